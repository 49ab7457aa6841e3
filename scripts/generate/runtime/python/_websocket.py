"""A WebSocket of RFC 6455, as far as a client of the gateway needs one."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import struct
import threading
from typing import Any, Dict, Optional, Tuple
from urllib.parse import urlsplit

from ._error import GatewayError
from ._failures import problem_error, rpc_error
from ._transport import Transport

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_LARGEST = 64 * 1024 * 1024
"""A message that is larger ends the connection."""
_QUIET_S = 20.0
"""After so long without a frame the other side is asked whether it is there."""


class Disconnected(OSError):
    """The connection has ended, with a code of the protocol and what the other side said."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"The connection ended with {code} {reason}".rstrip())
        self.code = code
        self.reason = reason


class WebSocket:
    """One connection. One thread reads; any may send."""

    def __init__(self, transport: Transport, url: str, token: str, timeout: float) -> None:
        self._socket = transport.open_socket(timeout)
        self._lock = threading.Lock()
        self._rest = b""
        try:
            self._socket.settimeout(timeout)
            self._shake_hands(url, token)
            self._socket.settimeout(_QUIET_S)
        except BaseException:
            self._socket.close()
            raise

    def send(self, text: str) -> None:
        self._send(_TEXT, text.encode())

    def receive(self) -> str:
        """The next message. Raises Disconnected once there is none."""
        whole = b""
        while True:
            is_last, kind, payload = self._read_frame()
            if kind == _PING:
                self._send(_PONG, payload)
            elif kind == _CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else 1005
                self._end(code if code != 1005 else 1000, "")
                raise Disconnected(code, payload[2:].decode("utf-8", "replace"))
            elif kind in (_TEXT, _BINARY, _CONTINUATION):
                whole += payload
                if len(whole) > _LARGEST:
                    self._end(1009, "too large")
                    raise Disconnected(1009, "a message is too large")
                if is_last:
                    return whole.decode()

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Ends the connection. A reader learns of it."""
        self._end(code, reason)

    def _end(self, code: int, reason: str) -> None:
        try:
            self._send(_CLOSE, struct.pack("!H", code) + reason.encode())
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()

    def _send(self, kind: int, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
        elif size < 65536:
            head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
        mask = os.urandom(4)
        with self._lock:
            self._socket.sendall(head + mask + _masked(payload, mask))

    def _read_frame(self) -> Tuple[bool, int, bytes]:
        first, second = self._read(2)
        size = second & 0x7F
        if size == 126:
            size = struct.unpack("!H", self._read(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", self._read(8))[0]
        if size > _LARGEST or second & 0x80 or first & 0x70:
            self._end(1002, "")
            raise Disconnected(1002, "a frame is not as the protocol has it")
        return bool(first & 0x80), first & 0x0F, self._read(size)

    def _read(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._rest += self._receive_some()
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def _receive_some(self) -> bytes:
        """Asks a quiet connection once whether it is there."""
        for is_asked in (False, True):
            try:
                some = self._socket.recv(65536)
            except socket.timeout:
                if is_asked:
                    break
                self._send(_PING, b"")
                continue
            except (OSError, ValueError) as lost:
                raise Disconnected(1006, str(lost)) from lost
            if some:
                return some
            raise Disconnected(1006, "it was cut off")
        self._socket.close()
        raise Disconnected(1006, "nothing came for too long")

    def _shake_hands(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        key = base64.b64encode(os.urandom(16)).decode()
        bearer = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
        lines = [
            f"GET {parts.path}/rpc/ws HTTP/1.1",
            f"Host: {parts.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Protocol: agent-gateway.v1, bearer.{bearer}",
        ]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        status, headers = self._read_head()
        if status != 101:
            raise self._refusal(status, int(headers.get("content-length", "0")))
        expected = base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()
        if headers.get("sec-websocket-accept") != expected:
            raise Disconnected(1002, "the answer is no WebSocket's")

    def _read_head(self) -> Tuple[int, Dict[str, str]]:
        while b"\r\n\r\n" not in self._rest:
            some = self._socket.recv(65536)
            if not some or len(self._rest) > 65536:
                raise Disconnected(1006, "the answer is no WebSocket's")
            self._rest += some
        head, self._rest = self._rest.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) < 2 or not words[1].isdigit():
            raise Disconnected(1002, "the answer is no HTTP")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return int(words[1]), headers

    def _refusal(self, status: int, size: int) -> Exception:
        """Why the gateway refused the connection, if it says so."""
        error: Optional[GatewayError] = None
        try:
            while len(self._rest) < size:
                some = self._socket.recv(65536)
                if not some:
                    break
                self._rest += some
            said: Dict[str, Any] = json.loads(self._rest)
            if "error" in said:
                error = rpc_error(said["error"], "rpc.connect", status)
            elif "title" in said:
                error = problem_error(said, "rpc.connect", status)
        except (OSError, ValueError, AttributeError, TypeError):
            pass
        return error or Disconnected(1006, f"HTTP {status}")


def _masked(payload: bytes, mask: bytes) -> bytes:
    size = len(payload)
    repeated = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
