# Copied by "npm run generate" from scripts/generate/runtime/python/_waiting.py; do not edit.
"""The pending calls of a WebSocket, and the rules for reconnecting."""

from __future__ import annotations

import random
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Union

from ._error import ClosedError, ConnectionFailedError, TimedOutError
from ._frames import Disconnected
from ._messages import Message
from ._requests import Omit, given

ATTEMPTS = 10
"""The number of attempts to reconnect before readers of pushes get the error."""
TOKEN_GONE = 4401
"""The close code for a token that is no longer valid: a new connection with it would be refused."""
MOST_UNREAD = 10_000
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 30.0

OnAnswer = Callable[[Mapping[str, Any]], None]


class Waiting:
    """A call that waits for the responses to its requests."""

    def __init__(self, ids: Set[str], on_answer: Optional[OnAnswer], on_done: Callable[[], None]) -> None:
        self.ids = ids
        self.responses: List[Message] = []
        self.error: Optional[BaseException] = None
        self._on_answer = on_answer
        self._on_done = on_done

    def take(self, response: Message) -> bool:
        """Adds a response, and returns true if it was the last. It is applied before any later message is read."""
        self.responses.append(response)
        self.ids.discard(str(response["id"]))
        if response["id"] is not None and self.ids:
            return False
        if self._on_answer and isinstance(response.get("result"), dict):
            self._on_answer(response["result"])
        self._on_done()
        return True

    def fail(self, error: BaseException) -> None:
        self.error = error
        self._on_done()


def answer(waiting: List[Waiting], response: Message) -> None:
    """A null id refuses a complete message. Answers arrive in any order, so it may refuse any open call."""
    for call in list(waiting):
        if response["id"] is not None and str(response["id"]) not in call.ids:
            continue
        if call.take(response):
            waiting.remove(call)
        if response["id"] is not None:
            return


def ids_of(message: Union[Message, List[Message]]) -> Set[str]:
    requests = message if isinstance(message, list) else [message]
    return {str(request["id"]) for request in requests if "id" in request}


def pause_before_reconnect(tried: int, reason: str) -> float:
    """Grows with each attempt, with jitter against other clients; the first pause is as long as the gateway requests."""
    hint = re.search(r"\bretry-after-ms=(\d{1,6})\b", reason)
    if tried == 0 and hint is not None:
        return min(_LONGEST_PAUSE_S, int(hint.group(1)) / 1000)
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**tried) * (0.5 + random.random() / 2)


def end_of(cause: BaseException) -> Disconnected:
    return cause if isinstance(cause, Disconnected) else Disconnected(1006, "")


def lost_error() -> ConnectionFailedError:
    return ConnectionFailedError("Connection failed", detail="The connection was lost.")


def unread_error() -> ConnectionFailedError:
    return ConnectionFailedError("Connection failed", detail=f"{MOST_UNREAD} pushes were not read in time.")


def no_push_error(timeout: float) -> TimedOutError:
    return TimedOutError("Timeout", operation="rpc.connect", detail=f"No push arrived within {timeout:g} s.")


def closed_error() -> ClosedError:
    return ClosedError("Closed", detail="The client was closed.")


def subscribe_params(
    sessions: Optional[Mapping[str, Optional[str]]], agents: Optional[List[str]], gateway: Union[str, None, Omit], deliveries: bool
) -> Dict[str, Any]:
    return given({"sessions": sessions, "agents": agents, "deliveries": deliveries or None}, {"gateway": gateway})


def unsubscribe_params(
    sessions: Optional[List[str]], agents: Optional[List[str]], gateway: bool, deliveries: bool
) -> Dict[str, Any]:
    return given({"sessions": sessions, "agents": agents, "gateway": gateway or None, "deliveries": deliveries or None})
