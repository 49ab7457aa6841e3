# Copied by "npm run generate" from scripts/generate/runtime/python/_head.py; do not edit.
"""The head of an HTTP response, as both transports return it."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from typing import Dict, Mapping, Tuple

MOST_HEAD_BYTES = 64 * 1024
"""A larger head ends the connection."""
MOST_BODY_BYTES = 64 * 1024 * 1024
"""A larger reply is not read to its end."""


class BrokenAnswer(http.client.HTTPException):
    """The other side sent something that is not an HTTP response, or is too large."""


@dataclass
class Head:
    url: str
    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def request_id(self) -> str:
        return self.headers.get("x-request-id", "")

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


def too_large() -> BrokenAnswer:
    return BrokenAnswer(f"the answer is larger than {MOST_BODY_BYTES // (1024 * 1024)} MiB")


def head_of(data: bytes) -> Tuple[int, Dict[str, str]]:
    """The status and the headers, by their names in lower case, of a response's head."""
    first, *lines = data.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not (len(status) == 3 and status.isascii() and status.isdigit()):
        raise BrokenAnswer("the answer is not HTTP")
    headers: Dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BrokenAnswer("a header of the answer is not HTTP")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return int(status), headers
