# Copied by "npm run generate" from scripts/generate/runtime/python/_async/timing.py; do not edit.
"""Limits the time of work in an event loop."""

from __future__ import annotations

import asyncio
import socket
from typing import Awaitable, Callable, Optional, TypeVar

Result = TypeVar("Result")


async def in_time(work: Awaitable[Result], seconds: Optional[float], undo: Optional[Callable[[Result], object]] = None) -> Result:
    """Returns the result of the work, or raises ``socket.timeout``. ``undo`` is called with a result that is not returned.

    A cancellation of the caller is always raised, even if it arrives together with the result or at the time limit.
    ``asyncio.wait_for`` drops such a cancellation before Python 3.12.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=None if seconds is None else max(0.0, seconds))
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))  # The work releases its connection before the caller continues.
            if task.cancelled():
                raise socket.timeout("timed out")
    except asyncio.CancelledError:
        task.cancel()
        task.add_done_callback(lambda ended: _drop(ended, undo))
        await asyncio.wait((task,))
        raise
    return task.result()


def _drop(ended: asyncio.Future[Result], undo: Optional[Callable[[Result], object]]) -> None:
    if not ended.cancelled() and ended.exception() is None and undo is not None:
        undo(ended.result())
