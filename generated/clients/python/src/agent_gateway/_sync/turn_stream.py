# Made by "npm run generate" from scripts/generate/runtime/python/_both/turn_stream.py; do not edit.
"""The events of a turn."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Iterator, Callable, Optional, cast

from .._error import ConnectionFailedError, GatewayError
from .._events import EventParser, ReplyText
from .._failures import is_worth_retrying
from .._head import BrokenAnswer
from .._reply import Reply
from .sleep import sleep
from .transport import Response

if TYPE_CHECKING:
    from ..rest_types import TurnEvent

_ATTEMPTS = 5
"""The most times that a lost stream is reopened without a new event in between."""
_SILENCE_S = 45.0
"""The gateway sends something every 15 seconds. A stream that is silent for longer than this is lost."""
_LAST_EVENTS = ("turn.completed", "turn.failed", "turn.cancelled")


class TurnStream:
    """The events of a turn until its end, with ``for``.

    The first read makes the call. A lost stream resumes after its last event. A reader that stops ends the stream, not the
    turn; ``with`` closes its connection at once.
    """

    def __init__(self, open_stream: Callable[[Optional[str], Optional[str]], Response]) -> None:
        self._open = open_stream
        self._response: Optional[Response] = None
        self._is_closed = False

    def __iter__(self) -> Iterator[TurnEvent]:
        turn_id: Optional[str] = None
        after: Optional[str] = None
        failed = 0
        while not self._is_closed:
            error: Optional[BaseException] = None
            try:
                response = self._response = self._open(turn_id, after)
                try:
                    parser = EventParser()
                    for piece in response.stream(_SILENCE_S):
                        for name, event_id, data in parser.feed(piece):
                            event = _event_of(name, event_id, data)
                            turn_id, after = event.data.turn_id, event_id
                            failed = 0
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
                detail = "The stream was lost several times in a row."
                raise ConnectionFailedError("Connection failed", detail=detail) from error
            sleep(min(5.0, 0.2 * 2**failed))
            failed += 1

    def text(self) -> Iterator[str]:
        """The reply, piece by piece.

        If a turn runs again, for example after a crash of the gateway, the text continues where the new reply exceeds the old one; a different
        reply is returned from its start. Raises a GatewayError if the turn ends without a reply.
        """
        reply = ReplyText()
        for event in self:
            piece = reply.piece_of(event)
            if piece:
                yield piece

    def close(self) -> None:
        """Closes the connection of the stream. The turn continues."""
        self._is_closed = True
        if self._response is not None:
            self._response.close()

    def __enter__(self) -> TurnStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _event_of(name: str, event_id: str, data: str) -> TurnEvent:
    try:
        content = json.loads(data, object_hook=Reply)
        content["turn_id"]
    except (ValueError, KeyError, TypeError, RecursionError) as broken:
        raise BrokenAnswer("an event is not a turn event") from broken
    return cast("TurnEvent", Reply(event=name, id=event_id, data=content))
