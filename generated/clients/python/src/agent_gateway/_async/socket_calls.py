# Copied by "npm run generate" from scripts/generate/runtime/python/_both/socket_calls.py; do not edit.
"""The calls that exist only on a WebSocket."""

from __future__ import annotations

from typing import List, Mapping, Optional, Union

from .._requests import OMIT, Omit
from .._waiting import subscribe_params, unsubscribe_params
from .connection import AsyncConnection, AsyncPushes


class AsyncSocketCalls:
    """The calls that exist only on a WebSocket."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def subscribe(
        self,
        *,
        sessions: Optional[Mapping[str, Optional[str]]] = None,
        agents: Optional[List[str]] = None,
        gateway: Union[str, None, Omit] = OMIT,
        deliveries: bool = False,
    ) -> None:
        """Subscribes to streams. A cursor continues after its push; None starts now.

        The client remembers them, and how far each has come, over lost connections.
        """
        await self._connection.subscribe(subscribe_params(sessions, agents, gateway, deliveries))

    async def unsubscribe(
        self,
        *,
        sessions: Optional[List[str]] = None,
        agents: Optional[List[str]] = None,
        gateway: bool = False,
        deliveries: bool = False,
    ) -> None:
        """Ends streams."""
        await self._connection.unsubscribe(unsubscribe_params(sessions, agents, gateway, deliveries))

    def pushes(self, *, timeout: Optional[float] = None) -> AsyncPushes:
        """Every push from now on. Each reader receives all of them. The client reopens a lost connection and resumes its subscriptions. If that

        fails, the reader gets a GatewayError. With a timeout it gets a TimedOutError if no push arrives for that many seconds, and may continue reading.
        """
        return self._connection.pushes(timeout)

    async def close(self) -> None:
        """Closes the socket."""
        await self._connection.close()
