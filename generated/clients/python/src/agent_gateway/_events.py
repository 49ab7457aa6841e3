# Copied by "npm run generate" from scripts/generate/runtime/python/_events.py; do not edit.
"""Parses the events of a stream, and assembles their text. Does no I/O."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Tuple, cast

from ._failures import named_error, turn_error
from ._head import BrokenAnswer
from ._reply import Reply

if TYPE_CHECKING:
    from .rest_types import TurnEvent

_MOST_EVENT_BYTES = 16 * 1024 * 1024
"""A larger event ends the stream."""

_ID = re.compile(r"[\x20-\x7e]{0,1000}")
"""The ids of events. A lost stream is resumed with the last one, in a header."""

ServerEvent = Tuple[str, str, str]
"""The name, the id and the data."""


class EventParser:
    """Finds events in the pieces of a ``text/event-stream``, as specified by the WHATWG. An incomplete event is omitted."""

    def __init__(self) -> None:
        self._name = self._id = ""
        self._data: List[str] = []
        self._line: List[bytes] = []
        """The pieces of an unfinished line."""
        self._size = 0
        self._ends_with_return = False

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """The events that a piece completes."""
        if self._ends_with_return and piece.startswith(b"\n"):  # The second half of "\r\n".
            piece = piece[1:]
        self._ends_with_return = piece.endswith(b"\r")
        *lines, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            whole = b"".join([*self._line, line]).decode("utf-8", "replace") if self._line else line.decode("utf-8", "replace")
            self._line.clear()
            self._count(len(line))
            event = self._take(whole)
            if event is not None:
                yield event
        if rest:
            self._count(len(rest))
            self._line.append(rest)

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > _MOST_EVENT_BYTES:
            raise BrokenAnswer(f"an event is larger than {_MOST_EVENT_BYTES // (1024 * 1024)} MiB")

    def _take(self, line: str) -> Optional[ServerEvent]:
        if line == "":
            event = (self._name or "message", self._id, "\n".join(self._data)) if self._data else None
            self._name, self._size = "", 0
            self._data.clear()
            return event
        if line.startswith(":") and not self._data:  # A comment is not a part of an event.
            self._size = 0
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif field == "id" and "\0" not in value:
            self._id = value
        return None


def event_of(name: str, event_id: str, data: str) -> TurnEvent:
    """An event of a turn, with the fields that this client reads. Raises BrokenAnswer for any other event."""
    try:
        content: Any = json.loads(data, object_hook=Reply)
    except (ValueError, RecursionError) as broken:
        raise BrokenAnswer("an event is not JSON") from broken
    if not isinstance(content, Reply) or not _ID.fullmatch(event_id) or not _is_turn_event(name, content):
        raise BrokenAnswer(f"an event is not a turn event: {data[:100]!r}")
    return cast("TurnEvent", Reply(event=name, id=event_id, data=content))


def _is_turn_event(name: str, content: Reply) -> bool:
    turn_id, text = content.get("turn_id"), content.get("text")
    if not isinstance(turn_id, str) or turn_id in ("", ".", ".."):
        return False
    if name == "message.delta":
        offset = content.get("offset")
        return isinstance(text, str) and isinstance(offset, int) and offset >= 0
    if name == "message.completed":
        return isinstance(text, str)
    error: Any = content.get("error")
    return name != "turn.failed" or (isinstance(error, Reply) and isinstance(error.get("name"), str))


class ReplyText:
    """The reply of a turn, piece by piece, from its events."""

    def __init__(self) -> None:
        self._given = ""
        self._reply = ""

    def piece_of(self, event: TurnEvent) -> str:
        """Returns the text that an event adds. Raises the error of a failed turn."""
        if event.event == "turn.started":
            self._reply = ""
        elif event.event == "message.delta":
            self._reply = _up_to(self._reply, event.data.offset) + event.data.text
        elif event.event == "message.completed":
            # A turn that has ended sends its reply without the pieces.
            self._reply = event.data.text
        elif event.event == "turn.failed":
            raise turn_error(event.data.error, event.data.turn_id)
        elif event.event == "turn.cancelled":
            turn_id = event.data.turn_id
            raise named_error("turn-cancelled", "Turn cancelled", detail="The turn was cancelled.", turn_id=turn_id)
        if self._given.startswith(self._reply):
            return ""
        piece = self._reply[len(self._given) :] if self._reply.startswith(self._given) else self._reply
        self._given = self._reply
        return piece


def _up_to(text: str, offset: int) -> str:
    """The beginning of a text. The gateway counts UTF-16 code units, of which some characters have two."""
    if text.isascii() or offset == 0:
        return text[:offset]
    return text.encode("utf-16-le", "surrogatepass")[: offset * 2].decode("utf-16-le", "surrogatepass")
