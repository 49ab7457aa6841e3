# Copied by "npm run generate" from scripts/generate/runtime/python/_async/connection.py; do not edit.
"""Calls and pushes over one WebSocket. The first call opens it, and a lost connection is opened again."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import socket
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Deque, List, Mapping, Optional, Set, Tuple, Union

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
from .timing import in_time
from .transport import AsyncTransport
from .websocket import AsyncWebSocket

if TYPE_CHECKING:
    from ..push_types import Push

_LOST = (OSError, ValueError, http.client.HTTPException)


class AsyncPushes:
    """The pushes of one reader, from the start of its reading. A reader that falls too far behind gets an error."""

    def __init__(self, on_end: Callable[[AsyncPushes], None], timeout: Optional[float]) -> None:
        self._pushes: Deque[Push] = deque()
        self._on_end = on_end
        self._timeout = timeout
        self._is_ended = False
        self._error: Optional[BaseException] = None
        self._readers: Deque[asyncio.Future[None]] = deque()

    def add(self, push: Push) -> None:
        if self._is_ended:
            return
        if len(self._pushes) >= MOST_UNREAD:
            self.fail(unread_error())
        else:
            self._pushes.append(push)
            self._wake()

    def fail(self, error: Optional[BaseException]) -> None:
        if self._is_ended:
            return
        self._is_ended, self._error = True, error
        self._on_end(self)
        while self._readers:
            self._wake()

    def close(self) -> None:
        """Stops reading. Unread pushes are dropped."""
        self.fail(None)
        self._pushes.clear()

    def _wake(self) -> None:
        while self._readers:
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result(None)
                return

    def __aiter__(self) -> AsyncPushes:
        return self

    async def __anext__(self) -> Push:
        while not self._pushes:
            if self._is_ended:
                error, self._error = self._error, None  # It is raised once; after that the reader has ended.
                raise error if error is not None else StopAsyncIteration
            await self._wait()
        return self._pushes.popleft()

    async def _wait(self) -> None:
        reader = asyncio.get_running_loop().create_future()
        self._readers.append(reader)
        try:
            await in_time(reader, self._timeout)
        except socket.timeout:
            raise no_push_error(self._timeout or 0) from None
        except BaseException:
            if reader.done() and not reader.cancelled():
                self._wake()  # Another reader gets the push that woke this one.
            raise

    async def __aenter__(self) -> AsyncPushes:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncConnection:
    """The WebSocket of one client. Any number of tasks of one event loop may use it."""

    def __init__(self, settings: Settings, transport: AsyncTransport) -> None:
        self._settings = settings
        self._transport = transport
        self._websocket: Optional[AsyncWebSocket] = None
        self._opening: Optional[asyncio.Task[AsyncWebSocket]] = None
        self._reading: Optional[asyncio.Task[None]] = None
        self._is_closed = False
        self._waiting: List[Waiting] = []
        self._readers: Set[AsyncPushes] = set()
        self._subscriptions = Subscriptions()
        self._ids = itertools.count(1)
        self._end: Optional[BaseException] = None
        """The error with which the last connection ended."""

    async def send(
        self, message: Union[Message, List[Message]], operation: str, on_answer: Optional[OnAnswer] = None
    ) -> Tuple[List[Message], Optional[ResponseInfo]]:
        return await in_time(self._send(message, operation, on_answer), self._settings.timeout)

    async def _send(
        self, message: Union[Message, List[Message]], operation: str, on_answer: Optional[OnAnswer]
    ) -> Tuple[List[Message], Optional[ResponseInfo]]:
        websocket = await self._ready(operation)
        ids = ids_of(message)
        done = asyncio.get_running_loop().create_future()
        call = Waiting(ids, on_answer, lambda: None if done.done() else done.set_result(None))
        if self._websocket is not websocket:
            raise connection_error(self._end or lost_error(), operation, self._settings.url)
        if ids:
            self._waiting.append(call)
        try:
            await websocket.send(json_bytes(message))
            if ids:
                await done
        finally:
            if call in self._waiting:
                self._waiting.remove(call)
        if call.error is not None:
            raise connection_error(call.error, operation, self._settings.url)
        return call.responses, None

    async def subscribe(self, request: Mapping[str, Any]) -> None:
        await self._control("rpc.subscribe", request, lambda begun: self._subscriptions.add(request, begun))

    async def unsubscribe(self, request: Mapping[str, Any]) -> None:
        self._subscriptions.remove(request)
        await self._control("rpc.unsubscribe", request, None)

    def pushes(self, timeout: Optional[float]) -> AsyncPushes:
        reader = AsyncPushes(self._readers.discard, timeout)
        self._readers.add(reader)
        if self._is_closed:
            reader.fail(closed_error())
        elif self._websocket is None and self._reading is None:

            def opened(task: asyncio.Task[AsyncWebSocket]) -> None:
                cause = None if task.cancelled() else task.exception()
                if cause is not None:
                    reader.fail(connection_error(cause, "rpc.connect", self._settings.url))

            self._open("rpc.connect").add_done_callback(opened)
        return reader

    async def close(self) -> None:
        self._is_closed = True
        websocket, self._websocket = self._websocket, None
        self._fail_calls(closed_error())
        for reader in list(self._readers):
            reader.fail(None)
        for task in (self._reading, self._opening):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        if websocket is not None:
            await websocket.close()
            await websocket.wait_closed()

    async def _control(self, method: str, params: Mapping[str, Any], on_answer: Optional[OnAnswer]) -> None:
        async def once() -> None:
            message = {"jsonrpc": "2.0", "method": method, "params": params, "id": f"{method} {next(self._ids)}"}
            responses, _ = await self.send(message, method, on_answer)
            if "error" in responses[0]:
                raise rpc_error(responses[0]["error"], method)

        await attempt(self._settings, method, once, is_repeatable=True)

    async def _ready(self, operation: str) -> AsyncWebSocket:
        """Returns the connection, and opens it if there is none. A failed first attempt is not retried."""
        if self._is_closed:
            raise closed_error()
        if self._websocket is not None:
            return self._websocket
        # Other callers may be waiting for the same connection: cancelling one call does not close it.
        opening = self._open(operation)
        await asyncio.wait((opening,))
        if opening.cancelled():
            raise closed_error()
        return opening.result()

    def _open(self, operation: str) -> asyncio.Task[AsyncWebSocket]:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_and_read(operation))
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._opening

    async def _open_and_read(self, operation: str) -> AsyncWebSocket:
        try:
            websocket = await self._connect(operation)
            self._websocket = websocket
            self._reading = asyncio.ensure_future(self._read(websocket))
            return websocket
        finally:
            self._opening = None

    async def _connect(self, operation: str) -> AsyncWebSocket:
        """Opens a connection and resumes the subscriptions."""
        settings = self._settings
        token = settings.token_of("rpc", operation)
        websocket = await AsyncWebSocket.open(self._transport, settings.url, token, settings.timeout)
        request = self._subscriptions.current()
        try:
            if request is not None:
                await in_time(self._resume(websocket, request), settings.timeout)
        except BaseException:
            await websocket.close()
            raise
        return websocket

    async def _resume(self, websocket: AsyncWebSocket, request: Mapping[str, Any]) -> None:
        own_id = f"rpc.subscribe {next(self._ids)}"
        await websocket.send(json_bytes({"jsonrpc": "2.0", "method": "rpc.subscribe", "params": request, "id": own_id}))
        is_answered = False
        while not is_answered:
            for message in messages_in(await websocket.receive()):
                if is_response(message) and message["id"] in (own_id, None):
                    if "error" in message:
                        raise rpc_error(message["error"], "rpc.subscribe")
                    self._subscriptions.moved(request, result_of(message, "rpc.subscribe", None))
                    is_answered = True
                else:
                    self._take(message)

    async def _read(self, websocket: AsyncWebSocket) -> None:
        """Reads until the connection is lost and is not reopened."""
        current: Optional[AsyncWebSocket] = websocket
        while current is not None:
            try:
                while True:
                    for message in messages_in(await current.receive()):
                        self._take(message)
            except _LOST as lost:
                current = await self._lost(current, lost)
        self._reading = None

    async def _lost(self, websocket: AsyncWebSocket, cause: Exception) -> Optional[AsyncWebSocket]:
        self._websocket, self._end = None, cause
        self._fail_calls(cause)  # Their results are unknown.
        await websocket.close()
        if self._is_closed or not self._readers:
            return None
        error: BaseException = connection_error(cause, None, self._settings.url)
        end = end_of(cause)
        if end.code != TOKEN_GONE:
            # Calls made meanwhile wait for this connection, too.
            self._opening = asyncio.ensure_future(self._connect_again(end.reason))
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())
            try:
                self._websocket = await self._opening
                return self._websocket
            except GatewayError as failed:
                error = failed
            finally:
                self._opening = None
        for reader in list(self._readers):
            reader.fail(error)
        return None

    async def _connect_again(self, reason: str) -> AsyncWebSocket:
        tried = 0
        while True:
            await asyncio.sleep(pause_before_reconnect(tried, reason))
            try:
                return await self._connect("rpc.connect")
            except (*_LOST, GatewayError) as cause:
                error = connection_error(cause, None, self._settings.url)
            tried += 1
            if tried >= ATTEMPTS or not is_worth_retrying(error, True):
                raise error

    def _take(self, message: Any) -> None:
        if is_response(message):
            answer(self._waiting, message)
        elif is_push(message):
            self._subscriptions.note(message)
            push = reply_of(message, "")
            for reader in list(self._readers):
                reader.add(push)

    def _fail_calls(self, error: BaseException) -> None:
        for call in self._waiting:
            call.fail(error)
        self._waiting.clear()
