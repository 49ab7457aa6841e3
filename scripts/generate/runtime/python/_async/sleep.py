"""Waits without keeping others from their work."""

from asyncio import sleep

__all__ = ["sleep"]
