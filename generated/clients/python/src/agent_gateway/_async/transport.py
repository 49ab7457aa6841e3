# Copied by "npm run generate" from scripts/generate/runtime/python/_async/transport.py; do not edit.
"""HTTP/1.1 over connections that are reused, for the tasks of an event loop."""

from __future__ import annotations

import asyncio
import http.client
import re
import select
import socket
import ssl
import time
from collections import deque
from typing import Any, AsyncIterator, Awaitable, Callable, Deque, Dict, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .._error import TimedOutError
from .._head import MOST_BODY_BYTES, MOST_HEAD_BYTES, BrokenAnswer, Head, head_of, too_large
from .._requests import Request
from .._waiting import closed_error
from .timing import Result, in_time

_IDLE_S = 30.0
"""A connection that was idle for longer is not reused: the other side may be about to close it."""
_MOST_IDLE = 32
_MOST_INFORMATIONAL = 10
"""The maximum number of 1xx responses before the final one. More of them close the connection."""
_LAST_WORD_S = 1.0
"""The time to send the last bytes of a connection. The rest is dropped."""
_PIECE = 65536

_Streams = Tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncResponse(Head):
    """A response whose head was received. Its body is read from the connection, which then serves the next request."""

    def __init__(self, connection: _Connection, url: str, status: int, headers: Mapping[str, str], deadline: float) -> None:
        super().__init__(url, status, headers)
        self._connection = connection
        self._deadline = deadline
        self._will_close = "close" in headers.get("connection", "").lower()
        self._length = self._body_length()

    async def read(self) -> bytes:
        """The complete body."""
        try:
            body = await _in_time(self._read_all(), self._deadline)
        except BaseException:
            self.close()
            raise
        self._connection.release(reusable=not self._will_close)
        return body

    async def stream(self, silence: float) -> AsyncIterator[bytes]:
        """The body in pieces, as they arrive. Raises an OSError if nothing arrives for ``silence`` seconds."""
        pieces = self._pieces()
        try:
            while True:
                piece = await _in_time(_next_of(pieces), time.monotonic() + silence)
                if piece is None:
                    return
                yield piece
        finally:
            self.close()

    def close(self) -> None:
        self._connection.release(reusable=False)

    def _body_length(self) -> Optional[int]:
        """The length of the body: -1 for chunks, None for a body that ends with the connection."""
        if self.status in (204, 304):
            return 0
        coding = self.headers.get("transfer-encoding")
        if coding is not None:
            if coding.lower() != "chunked":
                raise BrokenAnswer(f"the answer has the transfer coding {coding[:40]!r}")
            return -1
        length = self.headers.get("content-length")
        if length is None:
            self._will_close = True
            return None
        if not re.fullmatch(r"[0-9]{1,18}", length):
            raise BrokenAnswer("the answer has a Content-Length that is not a number")
        return int(length)

    async def _read_all(self) -> bytes:
        parts: List[bytes] = []
        size = 0
        async for piece in self._pieces():
            size += len(piece)
            if size > MOST_BODY_BYTES:
                raise too_large()
            parts.append(piece)
        return b"".join(parts)

    async def _pieces(self) -> AsyncIterator[bytes]:
        reader = self._connection.reader
        if self._length is None:
            while True:
                piece = await reader.read(_PIECE)
                if not piece:
                    return
                yield piece
        if self._length >= 0:
            async for piece in _exactly(reader, self._length):
                yield piece
            return
        while True:
            line = await _line(reader)
            size = re.fullmatch(rb"([0-9a-fA-F]{1,15})[ \t]*(;.*)?", line)
            if size is None:
                raise BrokenAnswer("a chunk of the answer has no size")
            left = int(size.group(1), 16)
            if left == 0:
                break
            async for piece in _exactly(reader, left):
                yield piece
            if await _line(reader) != b"":
                raise BrokenAnswer("a chunk of the answer is longer than its size")
        for _ in range(100):  # Trailers.
            if await _line(reader) == b"":
                return
        raise BrokenAnswer("the answer has too many trailers")


class _Connection:
    """A connection in use by one request."""

    def __init__(self, transport: AsyncTransport, streams: _Streams) -> None:
        self._transport = transport
        self._is_released = False
        self.reader, self.writer = streams

    def release(self, *, reusable: bool) -> None:
        """Returns the connection to the pool, or closes it at once. Further calls do nothing."""
        if self._is_released:
            return
        self._is_released = True
        self._transport.take_back((self.reader, self.writer), reusable=reusable)


class AsyncTransport:
    """Sends requests to one address."""

    def __init__(self, url: str, ssl_context: Optional[ssl.SSLContext]) -> None:
        parts = urlsplit(url)
        self._is_tls = parts.scheme == "https"
        self._context = ssl_context or (ssl.create_default_context() if self._is_tls else None)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._is_tls else 80)
        self._netloc = parts.netloc
        self._most = self._free = 100
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._waiting: Deque[asyncio.Future[None]] = deque()
        self._idle: List[Tuple[float, _Streams]] = []
        self._is_closed = False

    def use_at_most(self, connections: int) -> None:
        if connections < 1:
            raise ValueError(f"`max_connections` is {connections}: a client needs at least one.")
        self._most = self._free = connections

    async def send(self, request: Request, timeout: float) -> AsyncResponse:
        """Sends a request and returns its response once the head has arrived. Raises an OSError or an HTTPException."""
        self._check_open()
        self._use_running_loop()
        await self._wait_for_turn(timeout)
        deadline = time.monotonic() + timeout
        streams: Optional[_Streams] = None
        try:
            self._check_open()
            streams = self._take() or await _in_time(self._connect(), deadline, _abort)
            connection = _Connection(self, streams)
        except BaseException:
            self._let_next()
            raise
        try:
            return await _in_time(self._exchange(connection, request, deadline), deadline)
        except BaseException:
            connection.release(reusable=False)
            raise

    async def open_wire(self, timeout: float) -> AsyncWire:
        """Opens a new connection, with TLS for an https address."""
        self._check_open()
        deadline = time.monotonic() + timeout
        return AsyncWire(await _in_time(self._connect(), deadline, _abort), deadline, timeout)

    def take_back(self, streams: _Streams, *, reusable: bool) -> None:
        if reusable and not self._is_closed and len(self._idle) < _MOST_IDLE:
            self._idle.append((time.monotonic(), streams))
        else:
            _abort(streams)
        self._let_next()

    async def close(self) -> None:
        self._is_closed = True
        idle, self._idle = self._idle, []
        for _, streams in idle:
            _abort(streams)
        await asyncio.sleep(0)  # The loop closes the sockets in its next round.

    def _check_open(self) -> None:
        if self._is_closed:
            raise closed_error()

    def _use_running_loop(self) -> None:
        """Connections belong to one event loop: those of another loop are not reused."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        idle, self._idle = self._idle, []
        for _, streams in idle:
            _abort(streams)
        self._loop, self._free, self._waiting = loop, self._most, deque()

    async def _wait_for_turn(self, timeout: float) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await _in_time(turn, time.monotonic() + timeout)
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._let_next()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            if isinstance(error, socket.timeout):
                detail = (
                    f"All {self._most} connections of the client were in use for {timeout:g} s. "
                    "Close streams that are not read, or pass a larger `max_connections`."
                )
                raise TimedOutError("Timeout", detail=detail) from error
            raise

    def _let_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free = min(self._most, self._free + 1)

    def _take(self) -> Optional[_Streams]:
        while self._idle:
            since, streams = self._idle.pop()
            if time.monotonic() - since < _IDLE_S and not _has_something_to_read(streams):
                return streams
            _abort(streams)
        return None

    async def _connect(self) -> _Streams:
        name = self._host if self._is_tls else None
        return await asyncio.open_connection(
            self._host, self._port, ssl=self._context if self._is_tls else None, server_hostname=name, limit=MOST_HEAD_BYTES
        )

    async def _exchange(self, connection: _Connection, request: Request, deadline: float) -> AsyncResponse:
        connection.writer.write(_bytes_of(request, self._netloc))
        try:
            await connection.writer.drain()
        except OSError:
            # A server may refuse a body and close before it has read all of it. Its answer says why.
            pass
        for _ in range(_MOST_INFORMATIONAL):
            status, headers = head_of(await _head(connection.reader))
            if status >= 200 or status == 101:
                return AsyncResponse(connection, request.url, status, headers, deadline)
        raise BrokenAnswer("the answer does not begin")


class AsyncWire:
    """A connection that carries bytes both ways. One task receives; any may send."""

    def __init__(self, streams: _Streams, deadline: float, timeout: float) -> None:
        self._streams = streams
        self._deadline = deadline
        self._timeout = timeout
        self._lock = asyncio.Lock()

    async def send(self, data: bytes) -> None:
        """Sends bytes. Raises a timeout if the other side does not accept them in time."""
        self._streams[1].write(data)
        await in_time(self._drain(), self._timeout)

    async def _drain(self) -> None:
        async with self._lock:  # Before Python 3.12 only one task may wait for a stream.
            await self._streams[1].drain()

    async def receive(self, seconds: float) -> bytes:
        """Returns the next bytes, or none at the end. Raises a timeout if nothing arrives in that time."""
        return await _in_time(self._streams[0].read(_PIECE), time.monotonic() + seconds)

    async def receive_in_time(self) -> bytes:
        """Returns the next bytes during the handshake."""
        return await _in_time(self._streams[0].read(_PIECE), self._deadline)

    async def end(self, last: bytes) -> None:
        """Sends the last bytes, if they can be sent soon, and closes the connection. Does not wait until it is closed."""
        writer = self._streams[1]
        if not writer.is_closing():
            writer.write(last)
        writer.close()
        asyncio.get_running_loop().call_later(_LAST_WORD_S, self.close)

    async def wait_closed(self) -> None:
        writer = self._streams[1]
        try:
            await in_time(writer.wait_closed(), _LAST_WORD_S)
        except OSError:
            pass
        finally:
            self.close()

    def close(self) -> None:
        _abort(self._streams)


async def _in_time(work: Awaitable[Result], deadline: float, undo: Optional[Callable[[Result], object]] = None) -> Result:
    return await in_time(work, deadline - time.monotonic(), undo)


async def _next_of(pieces: AsyncIterator[bytes]) -> Optional[bytes]:
    async for piece in pieces:
        return piece
    return None


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size > 0:
        piece = await reader.read(min(size, _PIECE))
        if not piece:
            raise http.client.IncompleteRead(b"", size)
        size -= len(piece)
        yield piece


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n\r\n"))[:-4]
    except asyncio.LimitOverrunError as broken:
        raise BrokenAnswer(f"the head of the answer is larger than {MOST_HEAD_BYTES // 1024} KiB") from broken
    except asyncio.IncompleteReadError as broken:
        raise _cut_off(broken.partial) from broken


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n"))[:-2]
    except asyncio.LimitOverrunError as broken:
        raise BrokenAnswer("a line of the answer is too long") from broken
    except asyncio.IncompleteReadError as broken:
        raise _cut_off(broken.partial) from broken


def _cut_off(partial: bytes) -> Exception:
    if partial:
        return BrokenAnswer("the answer was cut off")
    return http.client.RemoteDisconnected("the other side closed the connection without an answer")


def _bytes_of(request: Request, netloc: str) -> bytes:
    parts = urlsplit(request.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers: Dict[str, str] = {"host": netloc, "accept-encoding": "identity", **request.headers}
    if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
        headers["content-length"] = str(len(request.body or b""))
    lines = [f"{request.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1") + (request.body or b"")


def _has_something_to_read(streams: _Streams) -> bool:
    """Whether the other side has closed a connection, or sent bytes that were not requested."""
    reader, writer = streams
    if writer.is_closing() or reader.at_eof():
        return True
    reading = reader.read(1)
    try:
        reading.send(None)  # It ends at once if something was read ahead.
    except StopIteration:
        return True
    finally:
        reading.close()
    sock: Any = writer.get_extra_info("socket")
    if sock is None or sock.fileno() < 0 or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _abort(streams: _Streams) -> None:
    """Closes a connection at once. A connection of an ended event loop is already closed."""
    try:
        streams[1].transport.abort()
    except RuntimeError:
        pass
