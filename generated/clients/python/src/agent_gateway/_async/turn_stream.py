# Copied by "npm run generate" from scripts/generate/runtime/python/_both/turn_stream.py; do not edit.
"""The events of a turn."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, AsyncIterator, Awaitable, Callable, Optional

from .._error import ConnectionFailedError, GatewayError
from .._events import EventParser, ReplyText, event_of
from .._failures import is_worth_retrying
from .sleep import sleep
from .transport import AsyncResponse

if TYPE_CHECKING:
    from ..rest_types import TurnEvent

_ATTEMPTS = 5
"""The maximum number of attempts to reopen a lost stream without a new event in between."""
_SILENCE_S = 45.0
"""The gateway sends something every 15 seconds. A stream that is silent for longer than this is lost."""
_LAST_EVENTS = ("turn.completed", "turn.failed", "turn.cancelled")


class AsyncTurnStream:
    """The events of a turn until its end, with ``async for``.

    The first read makes the call. A lost stream resumes after its last event. A reader that stops ends the stream, not the
    turn; ``async with`` closes its connection at once.
    """

    def __init__(self, open_stream: Callable[[Optional[str], Optional[str]], Awaitable[AsyncResponse]]) -> None:
        self._open = open_stream
        self._response: Optional[AsyncResponse] = None
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[TurnEvent]:
        turn_id: Optional[str] = None
        after: Optional[str] = None
        failed = 0
        while not self._is_closed:
            error: Optional[BaseException] = None
            try:
                response = self._response = await self._open(turn_id, after)
                try:
                    parser = EventParser()
                    async for piece in response.stream(_SILENCE_S):
                        for name, event_id, data in parser.feed(piece):
                            event = event_of(name, event_id, data)
                            if event_id != after:  # A server that repeats an event makes no progress.
                                failed = 0
                            turn_id, after = event.data.turn_id, event_id
                            yield event
                            if name in _LAST_EVENTS:
                                return
                finally:
                    response.close()
            except GatewayError as refusal:
                if turn_id is None or not is_worth_retrying(refusal, True):
                    raise
                error = refusal
            except (OSError, http.client.HTTPException) as lost:
                error = lost
            if self._is_closed:
                return
            if turn_id is None or failed >= _ATTEMPTS:
                raise _lost_error(failed, error) from error
            await sleep(min(5.0, 0.2 * 2**failed))
            failed += 1

    async def text(self) -> AsyncIterator[str]:
        """The reply, piece by piece.

        If a turn runs again, for example after a crash of the gateway, the text continues where the new reply exceeds the old one; a different
        reply is returned from its start. Raises a GatewayError if the turn ends without a reply.
        """
        reply = ReplyText()
        async for event in self:
            piece = reply.piece_of(event)
            if piece:
                yield piece

    def close(self) -> None:
        """Closes the connection of the stream. The turn continues."""
        self._is_closed = True
        if self._response is not None:
            self._response.close()

    async def __aenter__(self) -> AsyncTurnStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _lost_error(failed: int, cause: Optional[BaseException]) -> ConnectionFailedError:
    how = "was lost several times in a row" if failed else "was lost before its first event"
    why = f": {str(cause).rstrip('.')[:500]}" if cause is not None and str(cause) else ""
    return ConnectionFailedError("Connection failed", detail=f"The stream {how}{why}.")
