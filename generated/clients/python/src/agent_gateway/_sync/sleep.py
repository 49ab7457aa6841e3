# Copied by "npm run generate" from scripts/generate/runtime/python/_sync/sleep.py; do not edit.
"""Waits."""

from time import sleep

__all__ = ["sleep"]
