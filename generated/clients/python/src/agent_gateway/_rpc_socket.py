# Copied by "npm run generate" from scripts/generate/runtime/python/_rpc_socket.py; do not edit.
"""Calls and pushes over one WebSocket, which is opened by the first call, and again after it was lost."""

from __future__ import annotations

import itertools
import json
import queue
import random
import re
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Mapping, Optional, Set, Tuple, Union

from ._attempts import attempt
from ._error import ClosedError, ConnectionFailedError, GatewayError
from ._failures import connection_error, is_worth_retrying, rpc_error
from ._http import OMIT, Omit, given
from ._reply import ResponseInfo
from ._rpc import Message, is_response, messages_in
from ._settings import Settings
from ._subscriptions import Subscriptions
from ._transport import Transport
from ._websocket import Disconnected, WebSocket

if TYPE_CHECKING:
    from .push_types import Push

_ATTEMPTS = 10
"""How often a lost connection is tried again before readers of pushes are told."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 30.0
_TOKEN_GONE = 4401
"""The close code that says that the token is not known any more: with it no new connection would stand."""
_MOST_UNREAD = 10_000

OnAnswer = Callable[[Mapping[str, Any]], None]


class _Waiting:
    def __init__(self, ids: Set[str], on_answer: Optional[OnAnswer]) -> None:
        self.ids = ids
        self.responses: List[Message] = []
        self.error: Optional[BaseException] = None
        self.done = threading.Event()
        self._on_answer = on_answer

    def take(self, response: Message) -> bool:
        """Takes a response that is meant, and tells whether it was the last. It is applied before what came after it is looked at."""
        self.responses.append(response)
        self.ids.discard(str(response["id"]))
        if response["id"] is not None and self.ids:
            return False
        if self._on_answer and "result" in response:
            self._on_answer(response["result"] or {})
        self.done.set()
        return True


class Pushes:
    """One reader's pushes, from when it began to read. A reader that falls too far behind is ended with an error."""

    def __init__(self, on_end: Callable[[Pushes], None]) -> None:
        self._pushes: queue.SimpleQueue[Union[Push, BaseException, None]] = queue.SimpleQueue()
        self._on_end = on_end

    def add(self, push: Push) -> None:
        if self._pushes.qsize() >= _MOST_UNREAD:
            detail = f"{_MOST_UNREAD} pushes were not read in time."
            self.fail(ConnectionFailedError("Connection failed", detail=detail))
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
        push = self._pushes.get()
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
        self._waiting: List[_Waiting] = []
        self._readers: Set[Pushes] = set()
        self._subscriptions = Subscriptions()
        self._ids = itertools.count(1)

    def send(
        self, message: Union[Message, List[Message]], operation: str, on_answer: Optional[OnAnswer] = None
    ) -> Tuple[List[Message], Optional[ResponseInfo]]:
        websocket = self._ready(operation)
        requests = message if isinstance(message, list) else [message]
        ids = {str(request["id"]) for request in requests if "id" in request}
        call = _Waiting(ids, on_answer)
        with self._changed:
            if self._websocket is not websocket:
                raise ConnectionFailedError("Connection failed", detail="The connection was lost.")
            if ids:
                self._waiting.append(call)
        try:
            websocket.send(json.dumps(message, ensure_ascii=False, allow_nan=False))
            if ids and not call.done.wait(self._settings.timeout):
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

    def pushes(self) -> Pushes:
        reader = Pushes(self._forget)
        with self._changed:
            self._readers.add(reader)
        try:
            self._ready("rpc.connect")
        except (OSError, ValueError, GatewayError) as cause:
            self._forget(reader)
            raise connection_error(cause, "rpc.connect", self._settings.url)
        return reader

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            websocket, self._websocket = self._websocket, None
            self._fail_calls(_closed())
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
        """The connection, opened if it is not there. A first attempt that fails is not repeated."""
        with self._changed:
            until = time.monotonic() + self._settings.timeout
            while self._is_connecting and not self._is_closed:
                if not self._changed.wait(until - time.monotonic()):
                    raise socket.timeout("timed out")
            if self._is_closed:
                raise _closed()
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
        """A connection on which the subscriptions go on where they were."""
        token = self._settings.token_of("rpc", operation)
        websocket = WebSocket(self._transport, self._settings.url, token, self._settings.timeout)
        request = self._subscriptions.current()
        if request is None:
            return websocket
        try:
            own_id = f"rpc.subscribe {next(self._ids)}"
            websocket.send(json.dumps({"jsonrpc": "2.0", "method": "rpc.subscribe", "params": request, "id": own_id}))
            while True:
                message = json.loads(websocket.receive())
                if is_response(message) and message["id"] in (own_id, None):
                    if "error" in message:
                        raise rpc_error(message["error"], "rpc.subscribe")
                    self._subscriptions.moved(request, message["result"] or {})
                    return websocket
                self._take(message)
        except BaseException:
            websocket.close()
            raise

    def _read(self, websocket: WebSocket) -> None:
        """Reads until the connection is lost and not wanted back, in a thread of its own."""
        current: Optional[WebSocket] = websocket
        while current is not None:
            try:
                while True:
                    for message in messages_in(current.receive()):
                        self._take(message)
            except (OSError, ValueError) as lost:
                current = self._lost(current, lost)

    def _lost(self, websocket: WebSocket, cause: Exception) -> Optional[WebSocket]:
        websocket.close()
        error = connection_error(cause, None, self._settings.url)
        with self._changed:
            self._fail_calls(cause)  # Nobody knows whether they were done.
            self._websocket = None
            if self._is_closed or not self._readers:
                return None
            code, reason = (cause.code, cause.reason) if isinstance(cause, Disconnected) else (1006, "")
            self._is_connecting = code != _TOKEN_GONE
        found = self._connect_again(reason) if code != _TOKEN_GONE else error
        if isinstance(found, WebSocket):
            self._set(found)
            return None if self._is_closed else found
        self._set(None)
        for reader in list(self._readers):
            reader.fail(found)
        return None

    def _connect_again(self, reason: str) -> Union[WebSocket, GatewayError]:
        """Tries again and again, ever more slowly and never in step with other clients."""
        hint = re.search(r"\bretry-after-ms=(\d{1,6})\b", reason)
        tried = 0
        while True:
            pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**tried) * (0.5 + random.random() / 2)
            if tried == 0 and hint is not None:
                pause = min(_LONGEST_PAUSE_S, int(hint.group(1)) / 1000)
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, pause)
                if self._is_closed:
                    return _closed()
            try:
                return self._connect("rpc.connect")
            except (OSError, ValueError, GatewayError) as cause:
                error = connection_error(cause, None, self._settings.url)
            tried += 1
            if tried >= _ATTEMPTS or not is_worth_retrying(error, True):
                return error

    def _take(self, message: Any) -> None:
        with self._changed:
            if is_response(message):
                self._answer(message)
                return
            self._subscriptions.note(message)
            readers = list(self._readers)
        for reader in readers:
            reader.add(message)

    def _answer(self, response: Message) -> None:
        """A null id refuses a whole message. Answers are not bound to an order, so every open call may be meant."""
        for call in list(self._waiting):
            if response["id"] is not None and str(response["id"]) not in call.ids:
                continue
            if call.take(response):
                self._waiting.remove(call)
            if response["id"] is not None:
                return

    def _fail_calls(self, error: BaseException) -> None:
        for call in self._waiting:
            call.error = error
            call.done.set()
        self._waiting.clear()


class SocketCalls:
    """The calls that only a WebSocket has."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def subscribe(
        self,
        *,
        sessions: Optional[Mapping[str, Optional[str]]] = None,
        agents: Optional[List[str]] = None,
        gateway: Union[str, None, Omit] = OMIT,
        deliveries: bool = False,
    ) -> None:
        """Begins streams, or goes on with them behind a cursor; None begins now.

        The client remembers them, and how far each has come, over lost connections.
        """
        fields = {"sessions": sessions, "agents": agents, "deliveries": deliveries or None}
        self._connection.subscribe(given(fields, {"gateway": gateway}))

    def unsubscribe(
        self,
        *,
        sessions: Optional[List[str]] = None,
        agents: Optional[List[str]] = None,
        gateway: bool = False,
        deliveries: bool = False,
    ) -> None:
        """Ends streams."""
        fields = {"sessions": sessions, "agents": agents, "gateway": gateway or None, "deliveries": deliveries or None}
        self._connection.unsubscribe(given(fields))

    def pushes(self) -> Pushes:
        """Every push from now on, to each reader.

        A lost connection is opened again and its subscriptions go on where they were. If it does not come back, the reader gets a
        GatewayError.
        """
        return self._connection.pushes()

    def close(self) -> None:
        """Closes the socket."""
        self._connection.close()


def _closed() -> ClosedError:
    return ClosedError("Closed", detail="The client was closed.")
