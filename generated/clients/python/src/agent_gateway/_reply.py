# Copied by "npm run generate" from scripts/generate/runtime/python/_reply.py; do not edit.
"""Replies of the gateway, whole and in pages."""

from __future__ import annotations

import contextlib
import contextvars
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Generator, Generic, List, Mapping, Optional, TypeVar, cast
from ._error import NotAGatewayError
from ._fields import FIELDS


@dataclass(frozen=True)
class ResponseInfo:
    """The HTTP response of a call, without its body."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    request_id: str


class Reply(Dict[str, Any]):
    """An object of a reply: ``completed.reply`` is ``completed["reply"]``, and None where the contract has the field and the reply does not.

    A field that is named like a method of dicts, such as ``keys``, is read as ``reply["keys"]``.
    """

    _request_id: str = ""

    if TYPE_CHECKING:  # Each shape has its own fields for type checkers.
        request_id: str
        """The id of the request that was answered, as the gateway's log has it. Empty on a part of a reply."""
    else:

        def __getattr__(self, name: str) -> Any:
            found = _field_of(self, name)
            if found is not None:
                return self[found]
            if name == "request_id":
                return self._request_id
            if name in FIELDS:
                return None
            raise AttributeError(f"The reply has no field `{name}`. It has: {', '.join(self) or 'none'}.")

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self]


def _field_of(reply: Dict[str, Any], name: str) -> Optional[str]:
    """The field under its own name, or under that in Python: ``agent_name`` for ``agentName``, ``from_`` for ``from``."""
    if name.startswith("__"):
        return None
    first, *others = name.rstrip("_").split("_")
    candidates = (name, first + "".join(part.capitalize() for part in others))
    return next((one for one in candidates if one in reply), None)


def reply_of(data: Any, request_id: str) -> Any:
    """The reply of a request. Its objects were parsed as ``Reply``."""
    if isinstance(data, Reply):
        object.__setattr__(data, "_request_id", request_id)
    return data


def kind_of(value: Any) -> str:
    """The kind of a JSON value, for an error."""
    if value is None:
        return "null"
    for kind, words in ((bool, "a boolean"), (str, "text"), (list, "a list"), (dict, "an object")):
        if isinstance(value, kind):
            return words
    return "a number"


def request_id_of(reply: object) -> str:
    """The id under which the gateway's log and flight recorder have the request of this reply. Empty for a value that is not a reply."""
    return getattr(reply, "_request_id", "")


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


def _not_a_page(detail: str) -> NotAGatewayError:
    return NotAGatewayError("Not a gateway's answer", detail=f"{detail} Is this a gateway?")


def repeated_cursor() -> NotAGatewayError:
    return _not_a_page("The list does not end: it repeats a cursor.")


Data = TypeVar("Data")
Item = TypeVar("Item")


class PageData(Generic[Data, Item]):
    """The content of a page of a list."""

    data: Data
    """The reply itself."""

    def __init__(self, data: Data, items: str, next_field: str, cursor: Optional[str]) -> None:
        found = cast("Dict[str, Any]", data)
        if not isinstance(found.get(items), list):
            raise _not_a_page(f"The answer has no list `{items}`.")
        following = found.get(next_field)
        if following is not None and not isinstance(following, str):
            raise _not_a_page(f"The `{next_field}` of the answer is not text.")
        if following is not None and following == cursor:
            raise repeated_cursor()
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
