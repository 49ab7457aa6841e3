# Copied by "npm run generate" from scripts/generate/runtime/python/_sync/transport.py; do not edit.
"""HTTP/1.1 over connections that are kept, for any number of threads."""

from __future__ import annotations

import http.client
import select
import socket
import ssl
import threading
import time
from typing import Iterator, List, Optional, Tuple
from urllib.parse import urlsplit

from .._head import MOST_BODY_BYTES, Head, too_large
from .._requests import Request

_IDLE_S = 30.0
"""A connection that was idle for longer is not reused: the other side may be about to close it."""
_MOST_IDLE = 32


class Response(Head):
    """A response whose head was received. Its body is read from the connection, which then serves the next request."""

    def __init__(self, transport: Transport, connection: http.client.HTTPConnection, url: str, deadline: float) -> None:
        self._transport = transport
        self._connection = connection
        self._deadline = deadline
        self._response = connection.getresponse()
        super().__init__(url, self._response.status, {name.lower(): value for name, value in self._response.getheaders()})

    def read(self) -> bytes:
        """The whole body."""
        parts: List[bytes] = []
        size = 0
        try:
            while True:
                _limit(self._connection, self._deadline - time.monotonic())
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
        # `read1` takes an end that comes too early for the end.
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
            _limit(self._connection, silence)
            while True:
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

    def send(self, request: Request, timeout: float) -> Response:
        """Sends a request and returns its response once the head has arrived. Raises an OSError or an HTTPException."""
        parts = urlsplit(request.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        deadline = time.monotonic() + timeout
        connection = self._take() or self._connect(timeout)
        try:
            _limit(connection, deadline - time.monotonic())
            connection.request(request.method, target, body=request.body, headers=dict(request.headers))
            _limit(connection, deadline - time.monotonic())
            return Response(self, connection, request.url, deadline)
        except BaseException:
            connection.close()
            raise

    def open_wire(self, timeout: float) -> Wire:
        """Opens a new connection, with TLS for an https address."""
        return Wire(self._connect(timeout).sock, timeout)

    def give_back(self, connection: http.client.HTTPConnection, will_close: bool) -> None:
        with self._lock:
            if not will_close and len(self._idle) < _MOST_IDLE:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _take(self) -> Optional[http.client.HTTPConnection]:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                since, connection = self._idle.pop()
            # One that has something to read was closed by the other side.
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
        self._deadline = time.monotonic() + timeout
        self._lock = threading.Lock()

    def send(self, data: bytes) -> None:
        with self._lock:
            self._socket.sendall(data)

    def receive(self, seconds: float) -> bytes:
        """Returns the next bytes, or none at the end. Raises a timeout if nothing arrives in that time."""
        self._socket.settimeout(seconds)
        return self._socket.recv(65536)

    def receive_in_time(self) -> bytes:
        """Returns the next bytes during the handshake."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        return self.receive(left)

    def end(self, last: bytes) -> None:
        """Sends the last bytes, if they can be sent, and closes the connection."""
        try:
            self.send(last)
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.close()

    def close(self) -> None:
        self._socket.close()


def _has_something_to_read(sock: socket.socket) -> bool:
    if not hasattr(select, "poll"):  # As on Windows.
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _limit(connection: http.client.HTTPConnection, seconds: float) -> None:
    """Lets the next step on a connection take so long. Once a response closes the connection, it has no socket to set."""
    if seconds <= 0:
        raise socket.timeout("timed out")
    if connection.sock is not None:
        connection.sock.settimeout(seconds)
