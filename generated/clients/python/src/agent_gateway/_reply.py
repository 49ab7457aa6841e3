# Copied by "npm run generate" from scripts/generate/runtime/python/_reply.py; do not edit.
"""Replies of the gateway, whole and in pages."""

from __future__ import annotations

import contextlib
import contextvars
from dataclasses import dataclass
from typing import Any, Dict, Generator, Generic, List, Mapping, Optional, TypeVar, cast
from ._error import NotAGatewayError


@dataclass(frozen=True)
class ResponseInfo:
    """The HTTP response of a call, without its body."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    request_id: str


class _ReplyDict(Dict[str, Any]):
    """A reply that knows its request."""

    request_id = ""


def reply_of(data: Any, request_id: str) -> Any:
    if not isinstance(data, dict):
        return data
    reply = _ReplyDict(cast("Dict[str, Any]", data))
    reply.request_id = request_id
    return reply


def request_id_of(reply: object) -> str:
    """The id under which the gateway's log and flight recorder have the request of this reply. Empty for what is no reply."""
    return getattr(reply, "request_id", "")


_heard: contextvars.ContextVar[Optional[List[ResponseInfo]]] = contextvars.ContextVar("agent_gateway_heard", default=None)


def note_response(response: ResponseInfo) -> None:
    heard = _heard.get()
    if heard is not None:
        heard.append(response)


@contextlib.contextmanager
def responses_noted() -> Generator[List[ResponseInfo], None, None]:
    """The responses that come meanwhile."""
    heard: List[ResponseInfo] = []
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


Data = TypeVar("Data")
Item = TypeVar("Item")


class PageData(Generic[Data, Item]):
    """What a page of a list holds."""

    data: Data
    """The reply itself."""

    def __init__(self, data: Data, items: str, next_field: str) -> None:
        found: Any = data
        if not isinstance(found, dict) or not isinstance(cast("Dict[str, Any]", found).get(items), list):
            raise NotAGatewayError("Not a gateway's answer", detail=f"The answer has no list `{items}`. Is this a gateway?")
        self.data = data
        self._items = items
        self._next_field = next_field

    @property
    def items(self) -> List[Item]:
        """The items of this page only."""
        return cast("Dict[str, List[Item]]", self.data)[self._items]

    @property
    def next_cursor(self) -> Optional[str]:
        """The cursor of the next page. None on the last."""
        return cast("Dict[str, Optional[str]]", self.data).get(self._next_field)

    @property
    def has_more(self) -> bool:
        return self.next_cursor is not None

    @property
    def request_id(self) -> str:
        return request_id_of(self.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items}={len(self.items)}, has_more={self.has_more})"
