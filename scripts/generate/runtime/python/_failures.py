"""Turns answers into errors, and decides which calls are retried."""

from __future__ import annotations

import email.utils
import errno
import http.client
import json
import math
import random
import socket
import time
from typing import Any, Dict, List, Mapping, Optional, cast
from urllib.parse import urljoin, urlsplit

from ._error import ConnectionFailedError, GatewayError, NotAGatewayError, TimedOutError
from ._head import Head
from ._reply import Reply
from .errors import BY_NAME, RETRIED, family_of


def named_error(name: str, title: str, **facts: Any) -> GatewayError:
    """The error of a name, in its class if this client knows it, otherwise in the family of its status."""
    return (BY_NAME.get(name) or family_of(facts.get("status")))(title, name=name, **facts)


def rpc_error(error: Mapping[str, Any], operation: Optional[str], status: Optional[int] = None) -> GatewayError:
    """The error for the ``error`` of a JSON-RPC response."""
    found: Any = error.get("data")
    data = cast("Dict[str, Any]", found) if isinstance(found, dict) else {}
    code = error.get("code")
    return named_error(
        _text(data.get("name")) or "unknown",
        _text(error.get("message")) or "Error",
        operation=operation,
        status=status,
        code=code if isinstance(code, int) else None,
        detail=_text(data.get("detail")),
        request_id=_text(data.get("requestId")),
        turn_id=_text(data.get("turnId")),
        retry_after=_seconds(data.get("retryAfterMs")),
    )


def turn_error(error: Mapping[str, Any], turn_id: str) -> GatewayError:
    """The error with which a turn ended."""
    name = _text(error.get("name")) or "unknown"
    return named_error(name, _text(error.get("title")) or name, detail=_text(error.get("detail")), turn_id=turn_id)


def response_error(head: Head, body: Optional[bytes], operation: str) -> GatewayError:
    """The error for an unsuccessful response. Only a body of the gateway is read."""
    status = head.status
    if 300 <= status < 400:
        return _redirected(head, operation)
    after = _retry_after(head)
    problem = _problem_in(body)
    if problem is not None:
        return problem_error(problem, operation, status, after)
    kind = _kind(head)
    detail = f"{head.url} answered {status} with {kind} in place of the gateway's own error. Is a proxy in between?"
    facts = {"operation": operation, "status": status, "detail": detail, "request_id": head.request_id or None}
    return named_error(f"http-{status}", f"HTTP {status}", retry_after=after, **facts)


def _problem_in(body: Optional[bytes]) -> Optional[Dict[str, Any]]:
    try:
        problem: Any = None if body is None else json.loads(body, object_hook=Reply)
    except (ValueError, RecursionError):
        return None
    return cast("Dict[str, Any]", problem) if isinstance(problem, dict) else None


def problem_error(problem: Mapping[str, Any], operation: str, status: int, after: Optional[float] = None) -> GatewayError:
    """The error for an answer of the type ``application/problem+json``."""
    own_after = _seconds(problem.get("retry_after_ms"))
    return named_error(
        (_text(problem.get("type")) or "unknown").split("#")[-1],
        _text(problem.get("title")) or f"HTTP {status}",
        operation=operation,
        status=status,
        detail=_text(problem.get("detail")),
        request_id=_text(problem.get("request_id")),
        turn_id=_text(problem.get("turn_id")),
        retry_after=after if own_after is None else own_after,
        faults=_faults(problem.get("errors")),
    )


def not_a_gateway(head: Head, operation: str, wanted: str = "JSON", found: Optional[str] = None) -> GatewayError:
    detail = f"{head.url} answered {found or _kind(head)} in place of {wanted}. Is this a gateway?"
    return NotAGatewayError("Not a gateway's answer", operation=operation, status=head.status, detail=detail)


def _redirected(head: Head, operation: str) -> GatewayError:
    """A redirect is not followed: the token and the body would go to an address that the caller has not named."""
    location = head.headers.get("location", "")[:2000]
    try:
        target = urljoin(head.url, location) or "another address"
    except ValueError:
        target = location
    detail = f"{head.url} redirects to {target}. Nothing was sent there. If that is the gateway, use its address."
    return NotAGatewayError("Not a gateway's answer", operation=operation, status=head.status, detail=detail)


def _text(value: Any) -> Optional[str]:
    """A text field of an error. Another server may send a value of any type."""
    return value if isinstance(value, str) else None


def _faults(value: Any) -> List[Any]:
    return [fault for fault in cast("List[Any]", value) if isinstance(fault, dict)] if isinstance(value, list) else []


def _seconds(ms: Any) -> Optional[float]:
    try:
        return _finite(ms / 1000) if isinstance(ms, (int, float)) else None
    except OverflowError:
        return None


def _finite(seconds: float) -> Optional[float]:
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _kind(head: Head) -> str:
    return head.content_type.split(";")[0] or "no content"


def _retry_after(head: Head) -> Optional[float]:
    """``Retry-After`` in seconds, from seconds or a date."""
    text = head.headers.get("retry-after")
    if text is None:
        return None
    try:
        return _finite(float(text))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError, OSError):
        return None


_UNSENT = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)


def connection_error(cause: BaseException, operation: Optional[str], url: str) -> GatewayError:
    """The error for a call without a complete answer."""
    if isinstance(cause, GatewayError):
        return cause
    address = urlsplit(url)
    is_unsent = True
    if isinstance(cause, ConnectionRefusedError):
        detail = f"Nothing answers at {address.netloc} (ECONNREFUSED). Is the gateway running, and is the address right?"
    elif isinstance(cause, socket.gaierror):
        detail = f"There is no host {address.hostname}. Is the address right?"
    elif isinstance(cause, http.client.HTTPException) and not isinstance(cause, OSError):
        is_unsent = False
        words = "it was cut off" if isinstance(cause, http.client.IncompleteRead) else _words_of(cause)
        detail = f"The answer from {address.netloc} is broken: {words}."
    else:
        is_unsent = isinstance(cause, OSError) and cause.errno in _UNSENT
        detail = f"No answer came from {address.netloc}: {_words_of(cause)}."
    error = ConnectionFailedError("Connection failed", operation=operation, detail=detail)
    error.is_unsent = is_unsent
    error.__cause__ = cause
    return error


def _words_of(cause: BaseException) -> str:
    return str(cause).rstrip(".")[:500] or type(cause).__name__


def timeout_error(operation: str, timeout: float) -> GatewayError:
    detail = f"No answer came within {timeout:g} s. The call may still take effect."
    return TimedOutError("Timeout", operation=operation, detail=detail)


def is_worth_retrying(error: GatewayError, is_repeatable: bool) -> bool:
    """Returns true if the same call may succeed. ``is_repeatable``: a second call has no further effect."""
    if isinstance(error, ConnectionFailedError):
        return is_repeatable or error.is_unsent
    if error.name in RETRIED:
        return True
    if error.turn_id is not None:  # The turn has ended: a repeat would only report its end again.
        return False
    status = error.status or 0
    return status in (408, 429, 503) or (is_repeatable and status >= 500)


_LONGEST_PAUSE_S = 60.0
"""A longer pause is not waited for: the call fails with the error."""


def pause_before(tried: int, error: GatewayError, is_repeatable: bool) -> Optional[float]:
    """The time to wait before the next attempt; None if there is none."""
    if not is_worth_retrying(error, is_repeatable):
        return None
    pause = error.retry_after
    if pause is None:
        pause = 0.5 * 2**tried * (0.75 + random.random() / 2)
    return pause if pause <= _LONGEST_PAUSE_S else None


_LONGEST_PAUSE_BETWEEN_ASKS_S = 5.0


def pause_before_asking(asked: int) -> float:
    """The minimum time between the starts of two calls for the reply of one turn. The second call follows the first at once."""
    return 0.0 if asked == 0 else min(_LONGEST_PAUSE_BETWEEN_ASKS_S, 0.125 * 2 ** min(asked, 10))


def unfinished_error(operation: str, timeout: float, reply: Mapping[str, Any], key: Optional[str]) -> GatewayError:
    """The error for a turn whose server answers 202 at once, again and again."""
    detail = f"The turn has not ended within {timeout:g} s. Read it with `turns.get`."
    error = TimedOutError("Timeout", operation=operation, detail=detail, turn_id=_text(reply.get("turn_id")))
    error.idempotency_key = key
    return error
