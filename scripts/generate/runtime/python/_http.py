"""The REST calls and the webhooks, as the contract lists them."""

from __future__ import annotations

import http.client
import json
import re
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, TypeVar
from urllib.parse import quote, urlencode

from ._attempts import attempt
from ._failures import not_a_gateway, response_error
from ._reply import Page, ResponseInfo, reply_of, tell_response
from ._settings import Settings
from ._transport import Response, Transport
from ._turn_stream import TurnStream


class Omit:
    """Stands for a value that is not sent, where None would say something."""

    def __repr__(self) -> str:
        return "OMIT"


OMIT = Omit()


def given(fields: Mapping[str, Any], nullable: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """The fields that were given. Among those that may be null, None was given, and OMIT was not."""
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
    """The door whose token it needs: ``rest``, ``rpc``, ``webhook`` or ``none``."""
    is_idempotent: bool = False
    """It is sent with an idempotency key."""
    is_repeatable: bool = False
    """Doing it twice is doing it once."""
    is_text: bool = False
    reply_statuses: Tuple[int, ...] = ()
    """The statuses of failures that have the same body as a success."""


Result = TypeVar("Result")

_RESUMED = Operation("turns.events", "GET", "/api/v1/turns/{turn_id}/events", "rest", is_repeatable=True)


class Http:
    """Makes the calls of one client."""

    def __init__(self, settings: Settings, transport: Transport, idempotency_key: Optional[str] = None) -> None:
        self.settings = settings
        self.transport = transport
        self._idempotency_key = idempotency_key

    def call(
        self,
        operation: Operation,
        path: Sequence[str] = (),
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Any = None,
        key: Optional[str] = None,
    ) -> Any:
        """The reply."""
        return self._whole(operation, path, query, body, self._key_of(operation, key))[1]

    def send(self, operation: Operation, *, body: Any, key: Optional[str] = None) -> Any:
        """The reply once the turn has ended. The gateway answers 202 after a while: the same call with its key then waits on."""
        key = self._key_of(operation, key)
        while True:
            response, reply = self._whole(operation, (), None, body, key)
            if response.status != 202:
                return reply

    def page(self, operation: Operation, items: str, *, query: Mapping[str, Any]) -> Page[Any, Any]:
        data = self.call(operation, query=query)
        return Page(
            data,
            items,
            lambda cursor: self.page(operation, items, query={**query, "cursor": cursor}),
            data.get("next_cursor"),
        )

    def stream(self, operation: Operation, *, body: Any, key: Optional[str] = None) -> TurnStream:
        """The events of a turn that the call starts. A stream that is lost goes on as one of a turn that is there."""
        key = self._key_of(operation, key)

        def open_stream(turn_id: Optional[str], after: Optional[str]) -> Response:
            if turn_id is None:
                return self._events(operation, (), None, body, key)
            return self._events(_RESUMED, (turn_id,), after, None, None)

        return TurnStream(open_stream)

    def follow(self, operation: Operation, path: Sequence[str], after: Optional[str]) -> TurnStream:
        """The events of a turn that is there, behind one of them or from its start."""
        return TurnStream(lambda _, seen: self._events(operation, path, seen or after, None, None))

    def _key_of(self, operation: Operation, key: Optional[str]) -> Optional[str]:
        return (key or self._idempotency_key or str(uuid.uuid4())) if operation.is_idempotent else None

    def _whole(
        self, operation: Operation, path: Sequence[str], query: Optional[Mapping[str, Any]], body: Any, key: Optional[str]
    ) -> Tuple[ResponseInfo, Any]:
        def read(response: Response) -> Tuple[ResponseInfo, Any]:
            info = ResponseInfo(response.status, response.headers, response.request_id)
            data = _data_of(response, operation)
            tell_response(info)
            return info, reply_of(data, info.request_id)

        accept = "*/*" if operation.is_text else "application/json"
        return self._once(operation, path, query, body, key, {"accept": accept}, read)

    def _events(
        self, operation: Operation, path: Sequence[str], after: Optional[str], body: Any, key: Optional[str]
    ) -> Response:
        def read(response: Response) -> Response:
            if response.content_type.startswith("text/event-stream"):
                return response
            response.close()
            raise not_a_gateway(response, operation.name)

        headers = {"accept": "text/event-stream", "last-event-id": after}
        return self._once(operation, path, None, body, key, headers, read)

    def _once(
        self,
        operation: Operation,
        path: Sequence[str],
        query: Optional[Mapping[str, Any]],
        body: Any,
        key: Optional[str],
        headers: Mapping[str, Optional[str]],
        read: Callable[[Response], Result],
    ) -> Result:
        """One logical call: however often it is sent, it has one idempotency key."""
        settings, name = self.settings, operation.name
        url = _url_of(settings, operation.path, path, query)
        sent = None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        kind = None if sent is None else "application/json"

        def call() -> Result:
            more = {**headers, "content-type": kind, "idempotency-key": key}
            own = settings.headers_for(operation.door, name, **{k.replace("-", "_"): v for k, v in more.items()})
            response = self.transport.send(operation.method, url, own, sent, settings.timeout)
            if not response.is_success and response.status not in operation.reply_statuses:
                raise response_error(response, name)
            return read(response)

        return attempt(settings, name, call, is_repeatable=operation.is_repeatable, idempotency_key=key)


def _data_of(response: Response, operation: Operation) -> Any:
    if response.status == 204:
        response.read()
        return None
    if operation.is_text:
        return response.read().decode()
    if not response.content_type.startswith("application/json"):
        response.close()
        raise not_a_gateway(response, operation.name)
    try:
        return json.loads(response.read())
    except ValueError as broken:
        raise http.client.HTTPException("the reply is not whole") from broken


def _url_of(settings: Settings, path: str, values: Sequence[str], query: Optional[Mapping[str, Any]]) -> str:
    own = re.sub(r"^/hooks(?=/|$)", lambda _: settings.webhook_path.rstrip("/"), path)
    filled = iter(values)
    url = settings.url + re.sub(r"\{\w+\}", lambda _: quote(str(next(filled)), safe=""), own)
    sent = {name: _text_of(value) for name, value in (query or {}).items()}
    return f"{url}?{urlencode(sent, quote_via=quote)}" if sent else url


def _text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
