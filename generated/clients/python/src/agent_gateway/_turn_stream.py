# Copied by "npm run generate" from scripts/generate/runtime/python/_turn_stream.py; do not edit.
"""The events of a turn."""

from __future__ import annotations

import http.client
import json
import time
from typing import TYPE_CHECKING, Callable, Iterator, List, Optional, Tuple, cast

from ._error import ConnectionFailedError, GatewayError
from ._failures import is_worth_retrying, named_error
from ._transport import Response

if TYPE_CHECKING:
    from .rest_types import TurnEvent

_ATTEMPTS = 5
"""How often a lost stream is opened again without a new event in between."""
_SILENCE_S = 45.0
"""The gateway sends something every 15 seconds. A stream that is silent for longer than this is lost."""
_LAST_EVENTS = ("turn.completed", "turn.failed", "turn.cancelled")


class TurnStream:
    """The events of a turn until its end.

    The call is made when the reading begins. A stream that is lost goes on behind its last event. A reader that stops
    ends the stream, not the turn.
    """

    def __init__(self, open_stream: Callable[[Optional[str], Optional[str]], Response]) -> None:
        self._open = open_stream

    def __iter__(self) -> Iterator[TurnEvent]:
        turn_id: Optional[str] = None
        after: Optional[str] = None
        failed = 0
        while True:
            error: Optional[BaseException] = None
            try:
                for name, event_id, data in read_events(self._open(turn_id, after)):
                    event = cast("TurnEvent", {"event": name, "id": event_id, "data": json.loads(data)})
                    turn_id, after = event["data"]["turn_id"], event_id
                    failed = 0
                    yield event
                    if name in _LAST_EVENTS:
                        return
            except GatewayError as refusal:
                if turn_id is None or not is_worth_retrying(refusal, True):
                    raise
                error = refusal
            except (OSError, http.client.HTTPException) as lost:
                error = lost
            if turn_id is None or failed >= _ATTEMPTS:
                detail = "The stream was lost again and again."
                raise ConnectionFailedError("Connection failed", detail=detail) from error
            time.sleep(min(5.0, 0.2 * 2**failed))
            failed += 1

    def text(self) -> Iterator[str]:
        """The reply, piece by piece.

        A turn that runs again, after a crash of the gateway for instance, goes on where its new reply passes the old one; a reply that
        differs is given from its start. Raises a GatewayError where the turn ends without one.
        """
        given = ""
        reply = ""
        for event in self:
            if event["event"] == "turn.started":
                reply = ""
            elif event["event"] == "message.delta":
                reply = _up_to(reply, event["data"]["offset"]) + event["data"]["text"]
            elif event["event"] == "message.completed":
                # A turn that has ended is told without its pieces.
                reply = event["data"]["text"]
            elif event["event"] == "turn.failed":
                error, turn_id = event["data"]["error"], event["data"]["turn_id"]
                raise named_error(error["name"], error["title"], detail=error.get("detail"), turn_id=turn_id)
            elif event["event"] == "turn.cancelled":
                turn_id = event["data"]["turn_id"]
                raise named_error("turn-cancelled", "Turn cancelled", detail="The turn was cancelled.", turn_id=turn_id)
            if given.startswith(reply):
                continue
            piece = reply[len(given) :] if reply.startswith(given) else reply
            given = reply
            yield piece


def _up_to(text: str, offset: int) -> str:
    """The beginning of a text. The gateway counts in units of UTF-16, of which some characters have two."""
    if text.isascii() or offset == 0:
        return text[:offset]
    return text.encode("utf-16-le", "surrogatepass")[: offset * 2].decode("utf-16-le", "surrogatepass")


def read_events(response: Response) -> Iterator[Tuple[str, str, str]]:
    """The name, the id and the data of each event, as the WHATWG describes them. An event that is cut off is left out."""
    name = event_id = ""
    data: List[str] = []
    for line in _lines_of(response):
        if line == "":
            if data:
                yield name or "message", event_id, "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id" and "\0" not in value:
            event_id = value


def _lines_of(response: Response) -> Iterator[str]:
    rest = b""
    for part in response.stream(_SILENCE_S):
        rest += part
        # A "\r" at the end may be the first half of "\r\n": it waits for what follows.
        end = len(rest) - 1 if rest.endswith(b"\r") else len(rest)
        lines = rest[:end].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        rest = lines.pop() + rest[end:]
        for line in lines:
            yield line.decode()
