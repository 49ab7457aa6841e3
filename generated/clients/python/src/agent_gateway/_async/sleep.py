# Copied by "npm run generate" from scripts/generate/runtime/python/_async/sleep.py; do not edit.
"""Waits without blocking other tasks."""

from asyncio import sleep

__all__ = ["sleep"]
