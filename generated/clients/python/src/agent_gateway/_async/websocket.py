# Copied by "npm run generate" from scripts/generate/runtime/python/_both/websocket.py; do not edit.
"""A WebSocket (RFC 6455), with the parts that a client of the gateway needs."""

from __future__ import annotations

import json
import socket
from typing import Any, Dict, Optional

from .._error import GatewayError
from .._failures import problem_error, rpc_error
from .._frames import CLOSE, PING, PONG, TEXT, Disconnected, FrameParser, close_frame, closed_by, frame_of, handshake_of
from .._head import MOST_HEAD_BYTES, head_of
from .transport import AsyncTransport, AsyncWire

_QUIET_S = 20.0
"""After this time without a frame, the other side gets a ping."""
_MOST_REFUSAL_BYTES = 64 * 1024


class AsyncWebSocket:
    """One connection. One reader at a time; any number may send."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire
        self._parser = FrameParser()

    @classmethod
    async def open(cls, transport: AsyncTransport, url: str, token: str, timeout: float) -> AsyncWebSocket:
        wire = await transport.open_wire(timeout)
        try:
            websocket = cls(wire)
            await websocket._shake_hands(url, token)
        except BaseException:
            wire.close()
            raise
        return websocket

    async def send(self, message: bytes) -> None:
        await self._wire.send(frame_of(TEXT, message))

    async def receive(self) -> str:
        """Returns the next message. Raises Disconnected when the connection has ended."""
        while True:
            try:
                found = self._parser.next()
            except Disconnected as forbidden:
                await self.close(forbidden.code, forbidden.reason)
                raise
            if found is None:
                self._parser.feed(await self._receive_some())
                continue
            kind, payload = found
            if kind == TEXT:
                return await self._text(payload)
            if kind == PING:
                await self._wire.send(frame_of(PONG, payload))
            elif kind == CLOSE:
                end, code = closed_by(payload)
                await self.close(code)
                raise end

    async def _text(self, payload: bytes) -> str:
        try:
            return payload.decode()
        except UnicodeDecodeError as broken:
            await self.close(1007)
            raise Disconnected(1007, "a message is not UTF-8") from broken

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Ends the connection. A reader gets Disconnected."""
        await self._wire.end(close_frame(code, reason))

    async def wait_closed(self) -> None:  # async only
        await self._wire.wait_closed()  # async only

    async def _receive_some(self) -> bytes:
        """Pings an idle connection once."""
        for is_asked in (False, True):
            try:
                some = await self._wire.receive(_QUIET_S)
            except socket.timeout:
                if is_asked:
                    break
                await self._wire.send(frame_of(PING, b""))
                continue
            except (OSError, ValueError) as lost:
                raise Disconnected(1006, str(lost)) from lost
            if some:
                return some
            raise Disconnected(1006, "the connection was cut off")
        self._wire.close()
        raise Disconnected(1006, "nothing was received for too long")

    async def _shake_hands(self, url: str, token: str) -> None:
        request, accepted = handshake_of(url, token)
        await self._wire.send(request)
        data = bytearray()
        while b"\r\n\r\n" not in data:
            some = await self._wire.receive_in_time()
            if not some or len(data) > MOST_HEAD_BYTES:
                raise Disconnected(1006, "the answer is not a WebSocket handshake")
            data += some
        head, rest = bytes(data).split(b"\r\n\r\n", 1)
        status, headers = head_of(head)
        if status != 101:
            raise await self._refusal(status, headers, rest)
        if headers.get("sec-websocket-accept") != accepted:
            raise Disconnected(1002, "the answer is not a WebSocket handshake")
        self._parser.feed(rest)

    async def _refusal(self, status: int, headers: Dict[str, str], rest: bytes) -> Exception:
        """The gateway's reason for refusing the connection, if it gives one."""
        error: Optional[GatewayError] = None
        try:
            size = min(int(headers.get("content-length", "0")), _MOST_REFUSAL_BYTES)
            while len(rest) < size:
                some = await self._wire.receive_in_time()
                if not some:
                    break
                rest += some
            said: Dict[str, Any] = json.loads(rest)
            if "error" in said:
                error = rpc_error(said["error"], "rpc.connect", status)
            elif "title" in said:
                error = problem_error(said, "rpc.connect", status)
        except (OSError, ValueError, AttributeError, TypeError, RecursionError):
            pass
        return error or Disconnected(1006, f"HTTP {status}")
