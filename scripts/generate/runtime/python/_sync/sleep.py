"""Waits."""

from time import sleep

__all__ = ["sleep"]
