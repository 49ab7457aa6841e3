# Copied by "npm run generate" from scripts/generate/runtime/python/_async/sleep.py; do not edit.
"""Waits without keeping others from their work."""

from asyncio import sleep

__all__ = ["sleep"]
