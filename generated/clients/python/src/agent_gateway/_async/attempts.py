# Copied by "npm run generate" from scripts/generate/runtime/python/_both/attempts.py; do not edit.
"""Makes a call, and retries it if that is useful and safe."""

from __future__ import annotations

import http.client
import socket
from typing import Awaitable, Callable, Optional, TypeVar

from .._error import GatewayError
from .._failures import connection_error, pause_before, timeout_error
from .._settings import Settings
from .sleep import sleep

Result = TypeVar("Result")


async def attempt(
    settings: Settings,
    operation: str,
    call: Callable[[], Awaitable[Result]],
    *,
    is_repeatable: bool,
    idempotency_key: Optional[str] = None,
) -> Result:
    """Makes a call. Every failure is raised as a GatewayError."""
    tried = 0
    while True:
        try:
            return await call()
        except socket.timeout as late:
            error = timeout_error(operation, settings.timeout)
            error.__cause__ = late
        except (OSError, http.client.HTTPException, GatewayError) as cause:
            error = connection_error(cause, operation, settings.url)
        error.idempotency_key = idempotency_key
        pause = pause_before(tried, error, is_repeatable)
        if tried >= settings.max_retries or pause is None:
            raise error
        await sleep(pause)
        tried += 1
