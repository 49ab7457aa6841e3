# Copied by "npm run generate" from scripts/generate/runtime/python/_reply.py; do not edit.
"""Replies of the gateway."""

from __future__ import annotations

import contextlib
import contextvars
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Generator, List, Mapping, Optional

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
        """The id of the answered request in the gateway's log. Empty on a part of a reply."""
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
    """The field by its own name, or by its name in Python: ``agent_name`` for ``agentName``, ``from_`` for ``from``."""
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
    """The id of this reply's request in the gateway's log and flight recorder. Empty for a value that is not a reply."""
    return getattr(reply, "_request_id", "")


_heard: contextvars.ContextVar[Optional[List[ResponseInfo]]] = contextvars.ContextVar("agent_gateway_heard", default=None)


def note_response(response: ResponseInfo) -> None:
    heard = _heard.get()
    if heard is not None:
        heard.append(response)


@contextlib.contextmanager
def responses_noted() -> Generator[List[ResponseInfo], None, None]:
    """The responses that arrive meanwhile."""
    heard: List[ResponseInfo] = []
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)
