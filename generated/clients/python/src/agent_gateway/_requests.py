# Copied by "npm run generate" from scripts/generate/runtime/python/_requests.py; do not edit.
"""Requests as data: an operation of the contract with its values becomes a request, and a response becomes a reply."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple
from urllib.parse import quote, urlencode

from ._failures import not_a_gateway
from ._head import BrokenAnswer, Head
from ._reply import Reply, kind_of
from ._settings import Settings


class Omit:
    """Marks a value as not sent, where None has a meaning of its own."""

    def __repr__(self) -> str:
        return "OMIT"


OMIT = Omit()


def given(fields: Mapping[str, Any], nullable: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """The given fields. In a nullable field None counts as given, and OMIT does not."""
    found = {name: value for name, value in fields.items() if value is not None}
    found.update({name: value for name, value in (nullable or {}).items() if not isinstance(value, Omit)})
    return found


@dataclass(frozen=True)
class Operation:
    """An operation of the contract, as the client calls it."""

    name: str
    method: str
    path: str
    door: str
    """The surface whose token it needs: ``rest``, ``rpc``, ``webhook`` or ``none``."""
    is_idempotent: bool = False
    """True if it is sent with an idempotency key."""
    is_repeatable: bool = False
    """True if a repetition has no further effect."""
    is_text: bool = False
    is_empty: bool = False
    """True if a success has no body."""
    reply_statuses: Tuple[int, ...] = ()
    """The statuses of failures that have the same body as a success."""


RESUMED = Operation("turns.events", "GET", "/api/v1/turns/{turn_id}/events", "rest", is_repeatable=True)
"""Resumes the stream of an existing turn."""


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str]
    body: Optional[bytes]


def request_of(
    settings: Settings,
    operation: Operation,
    path: Sequence[str],
    *,
    accept: str,
    query: Optional[Mapping[str, Any]] = None,
    body: Any = None,
    key: Optional[str] = None,
    after: Optional[str] = None,
) -> Request:
    sent = None if body is None else json_bytes(body)
    more = {
        "accept": accept,
        "content-type": None if sent is None else "application/json",
        "idempotency-key": key,
        "last-event-id": after or None,
    }
    headers = settings.headers_for(operation.door, operation.name, more)
    return Request(operation.method, _url_of(settings, operation.path, path, query), headers, sent)


def key_of(operation: Operation, *given_keys: Optional[str]) -> Optional[str]:
    """The idempotency key of a call: one for all its attempts."""
    if not operation.is_idempotent:
        return None
    return next((key for key in given_keys if key), None) or str(uuid.uuid4())


def json_bytes(value: Any) -> bytes:
    """A lone surrogate, which UTF-8 cannot encode, is sent as an escape. The gateway accepts or refuses it."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False).encode()


def data_of(head: Head, body: bytes, operation: Operation) -> Any:
    """The reply in a response. In JSON it is an object."""
    if head.status == 204 and operation.is_empty:
        return None
    if operation.is_text:
        return body.decode("utf-8", "replace")
    if not head.content_type.startswith("application/json"):
        raise not_a_gateway(head, operation.name)
    try:
        reply: Any = json.loads(body, object_hook=Reply)
    except (ValueError, RecursionError) as broken:
        raise BrokenAnswer("the reply is not valid JSON") from broken
    if not isinstance(reply, Reply):
        raise not_a_gateway(head, operation.name, "an object", kind_of(reply))
    return reply


def _url_of(settings: Settings, path: str, values: Sequence[str], query: Optional[Mapping[str, Any]]) -> str:
    own = re.sub(r"^/hooks(?=/|$)", lambda _: settings.webhook_path.rstrip("/"), path)
    filled = iter(values)
    url = settings.url + re.sub(r"\{\w+\}", lambda _: _segment_of(next(filled)), own)
    sent = {name: _text_of(value) for name, value in (query or {}).items()}
    return f"{url}?{urlencode(sent, quote_via=quote)}" if sent else url


def _segment_of(value: object) -> str:
    """A value as one segment of a path. An empty value, or one of dots, would make another path."""
    text = str(value)
    if text in ("", ".", ".."):
        raise ValueError(f'"{text}" cannot be a part of a path: pass an id or a name.')
    return quote(text, safe="")


def _text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
