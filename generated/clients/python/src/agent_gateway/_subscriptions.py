# Copied by "npm run generate" from scripts/generate/runtime/python/_subscriptions.py; do not edit.
"""Remembers the subscriptions and the position of each stream, so that a new connection can continue there."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Set, cast

_MOST_SESSIONS = 1000
"""The maximum number of sessions per connection of the gateway."""


class Subscriptions:
    def __init__(self) -> None:
        self._sessions: Dict[str, Optional[str]] = {}
        self._seen: Dict[str, str] = {}
        """Sessions that are pushed because of their agent."""
        self._agents: Set[str] = set()
        self._gateway: Optional[str] = None
        self._wants_gateway = False
        self._deliveries = False

    def add(self, request: Mapping[str, Any], begun: Mapping[str, Any]) -> None:
        """Stores the requested streams, and the cursors at which they start. Pushes come after these."""
        begins = _sessions_of(begun)
        for session_id, cursor in _sessions_of(request).items():
            self._sessions[session_id] = begins.get(session_id, cursor)
        self._agents.update(request.get("agents") or ())
        if "gateway" in request:
            self._wants_gateway = True
            self._gateway = _text(begun.get("gateway")) or request["gateway"]
        self._deliveries = self._deliveries or bool(request.get("deliveries"))

    def moved(self, _: Mapping[str, Any], begun: Mapping[str, Any]) -> None:
        """The positions at which streams continue after a lost connection, as the gateway reported them."""
        for session_id, cursor in _sessions_of(begun).items():
            if session_id in self._sessions or cursor is None:
                self._sessions[session_id] = cursor
            else:
                self._seen[session_id] = cursor
        self._gateway = _text(begun.get("gateway", self._gateway))

    def remove(self, request: Mapping[str, Any]) -> None:
        for session_id in request.get("sessions") or ():
            self._sessions.pop(session_id, None)
        self._agents.difference_update(request.get("agents") or ())
        if not self._agents:
            self._seen.clear()
        if request.get("gateway"):
            self._wants_gateway, self._gateway = False, None
        if request.get("gateway") or request.get("deliveries"):
            self._deliveries = False

    def note(self, push: Mapping[str, Any]) -> None:
        """Stores the cursor of a push."""
        params: Mapping[str, Any] = push.get("params") or {}
        session_id, cursor = _text(params.get("sessionId")), _text(params.get("cursor"))
        if cursor is None:
            return
        if session_id is None:
            if self._wants_gateway:
                self._gateway = cursor
            return
        self._seen.pop(session_id, None)
        if push.get("method") == "session.deleted":
            self._sessions.pop(session_id, None)
        elif session_id in self._sessions:
            self._sessions[session_id] = cursor
        elif self._agents:
            self._seen[session_id] = cursor
        if self._seen and len(self._seen) + len(self._sessions) > _MOST_SESSIONS:
            self._seen.pop(next(iter(self._seen)))

    def current(self) -> Optional[Dict[str, Any]]:
        """The streams that a new connection must subscribe to, if any."""
        request: Dict[str, Any] = {}
        if self._sessions or self._seen:
            request["sessions"] = {**self._seen, **self._sessions}
        if self._agents:
            request["agents"] = sorted(self._agents)
        if self._wants_gateway:
            request["gateway"] = self._gateway
        if self._deliveries:
            request["deliveries"] = True
        return request or None


def _sessions_of(streams: Mapping[str, Any]) -> Dict[str, Optional[str]]:
    found = streams.get("sessions")
    sessions = cast("Dict[str, Any]", found) if isinstance(found, dict) else {}
    return {session_id: _text(cursor) for session_id, cursor in sessions.items()}


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None
