# Copied by "npm run generate" from scripts/generate/runtime/python/_sync/transport.py; do not edit.
"""HTTP/1.1 over connections that are reused, for any number of threads."""

from __future__ import annotations

import functools
import http.client
import io
import select
import socket
import ssl
import threading
import time
from typing import Any, Iterator, List, Optional, Tuple, Type, cast
from urllib.parse import urlsplit

from .._head import MOST_BODY_BYTES, Head, too_large
from .._requests import Request
from .._waiting import closed_error

_IDLE_S = 30.0
"""A connection that was idle for longer is not reused: the other side may be about to close it."""
_MOST_IDLE = 32
_LAST_WORD_S = 0.2
"""The longest wait of a closing connection for another thread that is sending."""


class _TimedReader(io.RawIOBase):
    """The bytes of a response, until a deadline: a server cannot prolong a call by sending a few bytes at a time."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._socket = sock
        self._bytes = sock.makefile("rb", buffering=0)
        self.deadline = deadline

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        self._socket.settimeout(left)
        return self._bytes.readinto(buffer)

    def close(self) -> None:
        self._bytes.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: float, **kwargs: Any) -> None:
        self.reader = _TimedReader(sock, deadline)
        super().__init__(cast("socket.socket", self.reader), *args, **kwargs)


class Response(Head):
    """A response whose head was received. Its body is read from the connection, which then serves the next request."""

    def __init__(self, transport: Transport, connection: http.client.HTTPConnection, url: str, deadline: float) -> None:
        self._transport = transport
        self._connection = connection
        response_class = functools.partial(_TimedResponse, deadline=deadline)
        connection.response_class = cast("Type[http.client.HTTPResponse]", response_class)
        self._response = cast("_TimedResponse", connection.getresponse())
        super().__init__(url, self._response.status, {name.lower(): value for name, value in self._response.getheaders()})

    def read(self) -> bytes:
        """The complete body."""
        parts: List[bytes] = []
        size = 0
        try:
            while True:
                part = self._response.read1(65536)
                if not part:
                    break
                size += len(part)
                if size > MOST_BODY_BYTES:
                    raise too_large()
                parts.append(part)
        except BaseException:
            self.close()
            raise
        body = b"".join(parts)
        # `read1` does not report a premature end.
        if self._response.length not in (None, 0):
            self.close()
            raise http.client.IncompleteRead(body, self._response.length)
        will_close = self._response.will_close
        self._response.close()
        self._transport.give_back(self._connection, will_close)
        return body

    def stream(self, silence: float) -> Iterator[bytes]:
        """The body in pieces, as they arrive. Raises an OSError if nothing arrives for ``silence`` seconds."""
        try:
            while True:
                self._response.reader.deadline = time.monotonic() + silence
                part = self._response.read1(65536)
                if not part:
                    return
                yield part
        finally:
            self.close()

    def close(self) -> None:
        self._response.close()
        self._connection.close()


class Transport:
    """Sends requests to one address."""

    def __init__(self, url: str, ssl_context: Optional[ssl.SSLContext]) -> None:
        parts = urlsplit(url)
        self._is_tls = parts.scheme == "https"
        self._context = ssl_context or (ssl.create_default_context() if self._is_tls else None)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._is_tls else 80)
        self._lock = threading.Lock()
        self._idle: List[Tuple[float, http.client.HTTPConnection]] = []
        self._is_closed = False

    def send(self, request: Request, timeout: float) -> Response:
        """Sends a request and returns its response once the head has arrived. Raises an OSError or an HTTPException."""
        parts = urlsplit(request.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        deadline = time.monotonic() + timeout
        connection = self._take() or self._connect(timeout)
        try:
            connection.sock.settimeout(timeout)
            connection.request(request.method, target, body=request.body, headers=dict(request.headers))
            return Response(self, connection, request.url, deadline)
        except BaseException:
            connection.close()
            raise

    def open_wire(self, timeout: float) -> Wire:
        """Opens a new connection, with TLS for an https address."""
        if self._is_closed:
            raise closed_error()
        return Wire(self._connect(timeout).sock, timeout)

    def give_back(self, connection: http.client.HTTPConnection, will_close: bool) -> None:
        with self._lock:
            if not will_close and not self._is_closed and len(self._idle) < _MOST_IDLE:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _take(self) -> Optional[http.client.HTTPConnection]:
        while True:
            with self._lock:
                if self._is_closed:
                    raise closed_error()
                if not self._idle:
                    return None
                since, connection = self._idle.pop()
            # A connection with readable bytes was closed by the other side.
            if time.monotonic() - since < _IDLE_S and not _has_something_to_read(connection.sock):
                return connection
            connection.close()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._is_tls:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout, context=self._context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class Wire:
    """A connection that carries bytes both ways. One thread receives; any may send."""

    def __init__(self, sock: socket.socket, timeout: float) -> None:
        self._socket = sock
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._lock = threading.Lock()

    def send(self, data: bytes) -> None:
        """Sends bytes. If the other side does not accept them in time, closes the connection, because a part of them may be sent."""
        if not self._lock.acquire(timeout=self._timeout):
            raise socket.timeout("timed out")
        try:
            self._socket.sendall(data)
        except BaseException:
            self._shut()
            raise
        finally:
            self._lock.release()

    def receive(self, seconds: float) -> bytes:
        """Returns the next bytes, or none at the end. Raises a timeout if nothing arrives in that time."""
        # A timeout of the socket would apply to the threads that send, too.
        is_pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0
        if not is_pending and not _has_something_to_read(self._socket, seconds):
            raise socket.timeout("timed out")
        return self._socket.recv(65536)

    def receive_in_time(self) -> bytes:
        """Returns the next bytes during the handshake."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        return self.receive(left)

    def end(self, last: bytes) -> None:
        """Sends the last bytes, if they can be sent at once, and closes the connection."""
        if self._lock.acquire(timeout=_LAST_WORD_S):
            try:
                self._socket.settimeout(0)
                self._socket.send(last)
            except OSError:
                pass
            finally:
                self._lock.release()
        self.close()

    def close(self) -> None:
        """Closes the connection at once. A thread that sends or receives gets an error."""
        self._shut()
        self._socket.close()

    def _shut(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _has_something_to_read(sock: socket.socket, seconds: float = 0) -> bool:
    if not hasattr(select, "poll"):  # As on Windows.
        return bool(select.select([sock], [], [], max(0.0, seconds))[0])
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))
