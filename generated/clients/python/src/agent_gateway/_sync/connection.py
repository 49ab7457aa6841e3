# Copied by "npm run generate" from scripts/generate/runtime/python/_sync/connection.py; do not edit.
"""Calls and pushes over one WebSocket. The first call opens it, and a lost connection is opened again."""

from __future__ import annotations

import http.client
import itertools
import queue
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Mapping, Optional, Set, Tuple, Union

from .._error import GatewayError
from .._failures import connection_error, is_worth_retrying, rpc_error
from .._messages import Message, is_push, is_response, messages_in, result_of
from .._reply import ResponseInfo, reply_of
from .._requests import json_bytes
from .._settings import Settings
from .._subscriptions import Subscriptions
from .._waiting import (
    ATTEMPTS,
    MOST_UNREAD,
    TOKEN_GONE,
    OnAnswer,
    Waiting,
    answer,
    closed_error,
    end_of,
    ids_of,
    lost_error,
    no_push_error,
    pause_before_reconnect,
    unread_error,
)
from .attempts import attempt
from .transport import Transport
from .websocket import WebSocket

if TYPE_CHECKING:
    from ..push_types import Push

_LOST = (OSError, ValueError, http.client.HTTPException)


class Pushes:
    """The pushes of one reader, from the start of its reading. A reader that falls too far behind gets an error."""

    def __init__(self, on_end: Callable[[Pushes], None], timeout: Optional[float]) -> None:
        self._pushes: queue.SimpleQueue[Union[Push, BaseException, None]] = queue.SimpleQueue()
        self._on_end = on_end
        self._timeout = timeout

    def add(self, push: Push) -> None:
        if self._pushes.qsize() >= MOST_UNREAD:
            self.fail(unread_error())
        else:
            self._pushes.put(push)

    def fail(self, error: Optional[BaseException]) -> None:
        self._on_end(self)
        self._pushes.put(error)

    def close(self) -> None:
        self.fail(None)

    def __enter__(self) -> Pushes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Push]:
        return self

    def __next__(self) -> Push:
        try:
            push = self._pushes.get(timeout=self._timeout)
        except queue.Empty:
            raise no_push_error(self._timeout or 0) from None
        if push is None:
            self._pushes.put(None)
            raise StopIteration
        if isinstance(push, BaseException):
            self._pushes.put(None)
            raise push
        return push


class Connection:
    """The WebSocket of one client. Any number of threads may use it."""

    def __init__(self, settings: Settings, transport: Transport) -> None:
        self._settings = settings
        self._transport = transport
        self._changed = threading.Condition(threading.RLock())
        self._websocket: Optional[WebSocket] = None
        self._is_connecting = False
        self._is_closed = False
        self._waiting: List[Waiting] = []
        self._readers: Set[Pushes] = set()
        self._subscriptions = Subscriptions()
        self._ids = itertools.count(1)
        self._end: Optional[BaseException] = None
        """The error with which the last connection ended."""

    def send(
        self, message: Union[Message, List[Message]], operation: str, on_answer: Optional[OnAnswer] = None
    ) -> Tuple[List[Message], Optional[ResponseInfo]]:
        websocket = self._ready(operation)
        ids = ids_of(message)
        done = threading.Event()
        call = Waiting(ids, on_answer, done.set)
        with self._changed:
            if self._websocket is not websocket:
                raise connection_error(self._end or lost_error(), operation, self._settings.url)
            if ids:
                self._waiting.append(call)
        try:
            websocket.send(json_bytes(message))
            if ids and not done.wait(self._settings.timeout):
                raise socket.timeout("timed out")
        finally:
            with self._changed:
                if call in self._waiting:
                    self._waiting.remove(call)
        if call.error is not None:
            raise connection_error(call.error, operation, self._settings.url)
        return call.responses, None

    def subscribe(self, request: Mapping[str, Any]) -> None:
        self._control("rpc.subscribe", request, lambda begun: self._subscriptions.add(request, begun))

    def unsubscribe(self, request: Mapping[str, Any]) -> None:
        self._subscriptions.remove(request)
        self._control("rpc.unsubscribe", request, None)

    def pushes(self, timeout: Optional[float]) -> Pushes:
        reader = Pushes(self._forget, timeout)
        with self._changed:
            self._readers.add(reader)
        try:
            self._ready("rpc.connect")
        except (*_LOST, GatewayError) as cause:
            self._forget(reader)
            raise connection_error(cause, "rpc.connect", self._settings.url)
        return reader

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            websocket, self._websocket = self._websocket, None
            self._fail_calls(closed_error())
            readers = list(self._readers)
            self._changed.notify_all()
        for reader in readers:
            reader.close()
        if websocket is not None:
            websocket.close()

    def _forget(self, reader: Pushes) -> None:
        with self._changed:
            self._readers.discard(reader)

    def _control(self, method: str, params: Mapping[str, Any], on_answer: Optional[OnAnswer]) -> None:
        def once() -> None:
            own_id = f"{method} {next(self._ids)}"
            message = {"jsonrpc": "2.0", "method": method, "params": params, "id": own_id}
            responses, _ = self.send(message, method, on_answer)
            if "error" in responses[0]:
                raise rpc_error(responses[0]["error"], method)

        attempt(self._settings, method, once, is_repeatable=True)

    def _ready(self, operation: str) -> WebSocket:
        """Returns the connection, and opens it if there is none. A failed first attempt is not retried."""
        with self._changed:
            until = time.monotonic() + self._settings.timeout
            while self._is_connecting and not self._is_closed:
                if not self._changed.wait(until - time.monotonic()):
                    raise socket.timeout("timed out")
            if self._is_closed:
                raise closed_error()
            if self._websocket is not None:
                return self._websocket
            self._is_connecting = True
        try:
            websocket = self._connect(operation)
        except BaseException:
            self._set(None)
            raise
        self._set(websocket)
        threading.Thread(target=self._read, args=(websocket,), name="agent-gateway", daemon=True).start()
        return websocket

    def _set(self, websocket: Optional[WebSocket]) -> None:
        with self._changed:
            self._is_connecting = False
            if not self._is_closed:
                self._websocket = websocket
            elif websocket is not None:
                websocket.close()
            self._changed.notify_all()

    def _connect(self, operation: str) -> WebSocket:
        """Opens a connection and resumes the subscriptions."""
        token = self._settings.token_of("rpc", operation)
        websocket = WebSocket.open(self._transport, self._settings.url, token, self._settings.timeout)
        request = self._subscriptions.current()
        if request is None:
            return websocket
        watch = threading.Timer(self._settings.timeout, websocket.close)
        watch.daemon = True
        watch.start()
        try:
            own_id = f"rpc.subscribe {next(self._ids)}"
            websocket.send(json_bytes({"jsonrpc": "2.0", "method": "rpc.subscribe", "params": request, "id": own_id}))
            is_answered = False
            while not is_answered:
                for message in messages_in(websocket.receive()):
                    if is_response(message) and message["id"] in (own_id, None):
                        if "error" in message:
                            raise rpc_error(message["error"], "rpc.subscribe")
                        self._subscriptions.moved(request, result_of(message, "rpc.subscribe", None))
                        is_answered = True
                    else:
                        self._take(message)
            return websocket
        except BaseException:
            websocket.close()
            raise
        finally:
            watch.cancel()

    def _read(self, websocket: WebSocket) -> None:
        """Reads until the connection is lost and is not reopened, in a separate thread."""
        current: Optional[WebSocket] = websocket
        while current is not None:
            try:
                while True:
                    for message in messages_in(current.receive()):
                        self._take(message)
            except _LOST as lost:
                current = self._lost(current, lost)

    def _lost(self, websocket: WebSocket, cause: Exception) -> Optional[WebSocket]:
        error = connection_error(cause, None, self._settings.url)
        end = end_of(cause)
        with self._changed:
            self._fail_calls(cause)  # Their results are unknown.
            self._websocket, self._end = None, cause
            is_wanted = bool(self._readers) and not self._is_closed
            self._is_connecting = is_wanted and end.code != TOKEN_GONE
        websocket.close()
        if not is_wanted:
            return None
        found = self._connect_again(end.reason) if end.code != TOKEN_GONE else error
        if isinstance(found, WebSocket):
            self._set(found)
            return None if self._is_closed else found
        self._set(None)
        for reader in list(self._readers):
            reader.fail(found)
        return None

    def _connect_again(self, reason: str) -> Union[WebSocket, GatewayError]:
        """Reconnects, with growing pauses."""
        tried = 0
        while True:
            pause = pause_before_reconnect(tried, reason)
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, pause)
                if self._is_closed:
                    return closed_error()
            try:
                return self._connect("rpc.connect")
            except (*_LOST, GatewayError) as cause:
                error = connection_error(cause, None, self._settings.url)
            tried += 1
            if tried >= ATTEMPTS or not is_worth_retrying(error, True):
                return error

    def _take(self, message: Any) -> None:
        with self._changed:
            if is_response(message):
                answer(self._waiting, message)
                return
            if not is_push(message):
                return
            self._subscriptions.note(message)
            readers = list(self._readers)
        push = reply_of(message, "")
        for reader in readers:
            reader.add(push)

    def _fail_calls(self, error: BaseException) -> None:
        for call in self._waiting:
            call.fail(error)
        self._waiting.clear()
