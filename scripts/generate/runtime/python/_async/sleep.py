"""Waits without blocking other tasks."""

from asyncio import sleep

__all__ = ["sleep"]
