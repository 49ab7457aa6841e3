# Made by "npm run generate" from scripts/generate/runtime/python/_both/http.py; do not edit.
"""Makes the calls of REST and the webhooks."""

from __future__ import annotations

import time
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple, TypeVar

from .._failures import not_a_gateway, pause_before_asking, response_error, unfinished_error
from .._reply import ResponseInfo, note_response, reply_of
from .._requests import RESUMED, Operation, Request, data_of, key_of, request_of
from .._settings import Settings
from .attempts import attempt
from .pages import Page, pages_of
from .sleep import sleep
from .transport import Response, Transport
from .turn_stream import TurnStream

Result = TypeVar("Result")


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
        return (self._whole(operation, path, query, body, key_of(operation, key, self._idempotency_key)))[1]

    def send(self, operation: Operation, *, body: Any, key: Optional[str] = None) -> Any:
        """Returns the reply once the turn has ended. After a 202 the same call, with the same idempotency key, continues to wait.

        If a server answers 202 without waiting, growing pauses precede the calls; ``timeout`` limits the sum of the pauses.
        """
        key = key_of(operation, key, self._idempotency_key)
        asked, left = 0, self.settings.timeout
        while True:
            begin = time.monotonic()
            status, reply = self._whole(operation, (), None, body, key)
            if status != 202:
                return reply
            if left <= 0:
                raise unfinished_error(operation.name, self.settings.timeout, reply, key)
            pause = min(left, max(0.0, pause_before_asking(asked) - (time.monotonic() - begin)))
            asked, left = asked + 1, left - pause
            sleep(pause)

    def pages(self, operation: Operation, items: str, *, query: Mapping[str, Any]) -> Page[Any, Any]:
        return pages_of(lambda: self._page(operation, items, query))

    def _page(self, operation: Operation, items: str, query: Mapping[str, Any]) -> Page[Any, Any]:
        data = self.call(operation, query=query)

        def following(cursor: str) -> Page[Any, Any]:
            return self._page(operation, items, {**query, "cursor": cursor})

        return Page(data, items, following, "next_cursor", query.get("cursor"))

    def stream(self, operation: Operation, *, body: Any, key: Optional[str] = None) -> TurnStream:
        """The events of a turn that the call starts. A lost stream resumes as the stream of an existing turn."""
        key = key_of(operation, key, self._idempotency_key)

        def open_stream(turn_id: Optional[str], after: Optional[str]) -> Response:
            if turn_id is None:
                return self._events(operation, (), None, body, key)
            return self._events(RESUMED, (turn_id,), after, None, None)

        return TurnStream(open_stream)

    def follow(self, operation: Operation, path: Sequence[str], after: Optional[str]) -> TurnStream:
        """The events of an existing turn, after one of them or from its start."""
        return TurnStream(lambda _, seen: self._events(operation, path, seen or after, None, None))

    def _whole(
        self, operation: Operation, path: Sequence[str], query: Optional[Mapping[str, Any]], body: Any, key: Optional[str]
    ) -> Tuple[int, Any]:
        accept = "*/*" if operation.is_text else "application/json"

        def read(response: Response) -> Tuple[int, Any]:
            data = data_of(response, response.read(), operation)
            note_response(ResponseInfo(response.status, response.headers, response.request_id))
            return response.status, reply_of(data, response.request_id)

        request = request_of(self.settings, operation, path, accept=accept, query=query, body=body, key=key)
        return self._once(operation, request, key, read)

    def _events(
        self, operation: Operation, path: Sequence[str], after: Optional[str], body: Any, key: Optional[str]
    ) -> Response:
        def check(response: Response) -> Response:
            if response.content_type.startswith("text/event-stream"):
                return response
            response.close()
            raise not_a_gateway(response, operation.name, "a stream of events")

        request = request_of(self.settings, operation, path, accept="text/event-stream", body=body, key=key, after=after)
        return self._once(operation, request, key, check)

    def _once(
        self,
        operation: Operation,
        request: Request,
        key: Optional[str],
        read: Callable[[Response], Result],
    ) -> Result:
        """Makes one logical call: all its attempts have the same idempotency key."""

        def call() -> Result:
            response = self.transport.send(request, self.settings.timeout)
            if response.is_success or response.status in operation.reply_statuses:
                return read(response)
            raise failure_of(response, operation.name)

        return attempt(self.settings, operation.name, call, is_repeatable=operation.is_repeatable, idempotency_key=key)


def failure_of(response: Response, operation: str) -> Exception:
    """The error for an unsuccessful response."""
    if response.content_type.startswith("application/problem+json"):
        return response_error(response, response.read(), operation)
    response.close()
    return response_error(response, None, operation)
