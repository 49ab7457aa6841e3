# Copied by "npm run generate" from scripts/generate/runtime/python/_attempts.py; do not edit.
"""Makes a call, and again where that is worth it and safe."""

from __future__ import annotations

import http.client
import random
import socket
import time
from typing import Callable, Optional, TypeVar

from ._error import GatewayError
from ._failures import connection_error, is_worth_retrying, timeout_error
from ._settings import Settings

Result = TypeVar("Result")

_LONGEST_PAUSE_S = 60.0
"""A longer pause than this is left to the caller."""


def attempt(
    settings: Settings,
    operation: str,
    call: Callable[[], Result],
    *,
    is_repeatable: bool,
    idempotency_key: Optional[str] = None,
) -> Result:
    """Makes a call. Whatever goes wrong is raised as a GatewayError."""
    tried = 0
    while True:
        try:
            return call()
        except socket.timeout as late:
            error = timeout_error(operation, settings.timeout)
            error.__cause__ = late
        except (OSError, http.client.HTTPException, GatewayError) as cause:
            error = connection_error(cause, operation, settings.url)
        error.idempotency_key = idempotency_key
        pause = error.retry_after
        if pause is None:
            pause = 0.5 * 2**tried * (0.75 + random.random() / 2)
        if tried >= settings.max_retries or not is_worth_retrying(error, is_repeatable) or pause > _LONGEST_PAUSE_S:
            raise error
        time.sleep(pause)
        tried += 1
