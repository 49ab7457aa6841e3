# Copied by "npm run generate" from scripts/generate/runtime/python/_reply.py; do not edit.
"""Replies of the gateway, whole and in pages."""

from __future__ import annotations

import contextvars
from dataclasses import dataclass
from typing import Any, Callable, Dict, Generic, Iterator, List, Mapping, Optional, TypeVar, cast

Data = TypeVar("Data")
Item = TypeVar("Item")


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


def tell_response(response: ResponseInfo) -> None:
    heard = _heard.get()
    if heard is not None:
        heard.append(response)


def hear_responses(call: Callable[[], Data]) -> tuple[Data, List[ResponseInfo]]:
    """Makes a call, and gives the responses that came meanwhile with its result."""
    heard: List[ResponseInfo] = []
    token = _heard.set(heard)
    try:
        return call(), heard
    finally:
        _heard.reset(token)


class Page(Generic[Data, Item]):
    """A page of a list. Iterate over it to get the items of this page and of all that follow."""

    data: Data
    """The reply itself."""

    def __init__(self, data: Data, items: str, following: Callable[[str], Page[Data, Item]], cursor: Optional[str]) -> None:
        self.data = data
        self._items = items
        self._following = following
        self._cursor = cursor

    @property
    def items(self) -> List[Item]:
        """The items of this page alone."""
        return cast("Dict[str, List[Item]]", self.data)[self._items]

    @property
    def request_id(self) -> str:
        return request_id_of(self.data)

    def next_page(self) -> Optional[Page[Data, Item]]:
        """The page that follows, or None after the last."""
        return None if self._cursor is None else self._following(self._cursor)

    def __iter__(self) -> Iterator[Item]:
        page: Optional[Page[Data, Item]] = self
        while page is not None:
            yield from page.items
            page = page.next_page()
