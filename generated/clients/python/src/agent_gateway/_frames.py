# Copied by "npm run generate" from scripts/generate/runtime/python/_frames.py; do not edit.
"""The frames of RFC 6455 that a client of the gateway needs. Does no I/O."""

from __future__ import annotations

import base64
import hashlib
import os
import struct
from typing import Optional, Tuple
from urllib.parse import urlsplit

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, TEXT, _BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
_MOST_MESSAGE_BYTES = 64 * 1024 * 1024
"""A larger message ends the connection."""
_MOST_FRAMES = 100_000
"""A message with more frames ends the connection."""


class Disconnected(OSError):
    """The connection has ended, with a close code and the other side's reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"The connection ended with {code} {reason}".rstrip())
        self.code = code
        self.reason = reason


class FrameParser:
    """Finds messages in the bytes of a connection."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._message = bytearray()
        self._frames = 0

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def next(self) -> Optional[Tuple[int, bytes]]:
        """The next complete message or control frame. Raises Disconnected, with the close code, for a violation of the protocol."""
        while True:
            frame = self._frame()
            if frame is None:
                return None
            is_last, kind, payload = frame
            if kind in (CLOSE, PING, PONG):
                return kind, payload
            if kind not in (_CONTINUATION, TEXT, _BINARY) or (kind == _CONTINUATION) != (self._frames > 0):
                raise Disconnected(1002, "a frame violates the protocol")
            self._message += payload
            self._frames += 1
            if len(self._message) > _MOST_MESSAGE_BYTES or self._frames > _MOST_FRAMES:
                raise Disconnected(1009, "a message is too large")
            if is_last:
                message = bytes(self._message)
                self._message.clear()
                self._frames = 0
                return TEXT, message

    def _frame(self) -> Optional[Tuple[bool, int, bytes]]:
        have = self._bytes
        if len(have) < 2:
            return None
        first, second = have[0], have[1]
        size, start = second & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            if len(have) < start:
                return None
            size = struct.unpack("!H" if size == 126 else "!Q", have[2:start])[0]
        kind = first & 0x0F
        is_control = kind >= CLOSE
        if second & 0x80 or first & 0x70 or (is_control and (size > 125 or not first & 0x80)):
            raise Disconnected(1002, "a frame violates the protocol")
        if size > _MOST_MESSAGE_BYTES:
            raise Disconnected(1009, "a message is too large")
        if len(have) < start + size:
            return None
        payload = bytes(have[start : start + size])
        del have[: start + size]
        return bool(first & 0x80), kind, payload


def frame_of(kind: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
    elif size < 65536:
        head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
    mask = os.urandom(4)
    repeated = (mask * (size // 4 + 1))[:size]
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
    return head + mask + masked


def close_frame(code: int, reason: str) -> bytes:
    return frame_of(CLOSE, struct.pack("!H", code) + reason.encode()[:123])


def closed_by(payload: bytes) -> Tuple[Disconnected, int]:
    """The end that a close frame announces, and the code to answer with."""
    code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else 1005
    return Disconnected(code, payload[2:].decode("utf-8", "replace")), 1000 if code == 1005 else code


def handshake_of(url: str, token: str) -> Tuple[bytes, str]:
    """The request that opens a WebSocket, and the header that accepts it."""
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
    accepted = base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()
    return "\r\n".join([*lines, "", ""]).encode(), accepted
