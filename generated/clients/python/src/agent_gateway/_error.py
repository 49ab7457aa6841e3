# Copied by "npm run generate" from scripts/generate/runtime/python/_error.py; do not edit.
"""The error that a failed call raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Sequence

if TYPE_CHECKING:
    from .rest_types import Fault


class GatewayError(Exception):
    """A call failed.

    Catch the class of one error, such as ``SessionBusyError``, or a family, such as ``NotFoundError`` for all with the status 404, or decide
    by ``name``. A name without a class of its own comes from a newer gateway.
    """

    name: str = "unknown"
    """A name of the gateway's error table, such as ``session-busy``, or one of this client's own."""
    operation: Optional[str]
    """The call, such as ``chat.send``."""
    status: Optional[int]
    """The HTTP status. A call over a WebSocket has none."""
    code: Optional[int]
    """The JSON-RPC error code of an RPC call."""
    title: str
    """The short text of the error, always the same."""
    detail: Optional[str]
    """The fault of this call, in words."""
    request_id: Optional[str]
    """The id of the call in the gateway's log and flight recorder."""
    turn_id: Optional[str]
    """The turn that the error is about."""
    retry_after: Optional[float]
    """The number of seconds after which the same call may succeed."""
    faults: List[Fault]
    """Each fault of a request that does not match the contract."""
    idempotency_key: Optional[str]
    """The idempotency key of the call. A repeat with this key starts nothing twice."""

    def __init__(
        self,
        title: str,
        *,
        name: Optional[str] = None,
        operation: Optional[str] = None,
        status: Optional[int] = None,
        code: Optional[int] = None,
        detail: Optional[str] = None,
        request_id: Optional[str] = None,
        turn_id: Optional[str] = None,
        retry_after: Optional[float] = None,
        faults: Sequence[Fault] = (),
    ) -> None:
        super().__init__((f"{operation}: " if operation else "") + (detail or title))
        if name is not None:
            self.name = name
        self.title = title
        self.operation = operation
        self.status = status
        self.code = code
        self.detail = detail
        self.request_id = request_id
        self.turn_id = turn_id
        self.retry_after = retry_after
        self.faults = list(faults)
        self.idempotency_key = None


class APIStatusError(GatewayError):
    """The gateway answered with an error."""


class APIConnectionError(GatewayError):
    """No answer arrived. The requested work may be done nevertheless."""


class ConnectionFailedError(APIConnectionError):
    """The connection could not be opened, or was lost. ``__cause__`` says why."""

    name = "connection-failed"
    is_unsent: bool = False
    """The connection was never opened: nothing was sent."""


class TimedOutError(APIConnectionError):
    """No answer arrived in time. The requested work may be done nevertheless."""

    name = "timeout"


class NotAGatewayError(GatewayError):
    """Something answered, and it is not a gateway."""

    name = "not-a-gateway"


class NoTokenError(GatewayError):
    """The call needs a token that the client does not have."""

    name = "no-token"


class BadSignatureError(GatewayError):
    """The request cannot be trusted."""

    name = "bad-signature"


class ClosedError(GatewayError):
    """The client was closed."""

    name = "closed"
