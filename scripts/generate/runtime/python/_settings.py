"""The settings of a client."""

from __future__ import annotations

import os
import re
import ssl
import warnings
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Set
from urllib.parse import urlsplit

from ._error import NoTokenError

_TOKENS = {
    "rest": ("a REST key", "key", "REST_API_KEY"),
    "rpc": ("an RPC token", "rpc_token", "RPC_TOKEN"),
    "webhook": ("the webhook token", "webhook_token", "WEBHOOK_TOKEN"),
}

_OLD_NAMES = {
    "GATEWAY_URL": "AGENT_GATEWAY_URL",
    "REST_API_KEY": "AGENT_GATEWAY_KEY",
    "RPC_TOKEN": "AGENT_GATEWAY_RPC_TOKEN",
    "WEBHOOK_TOKEN": "AGENT_GATEWAY_WEBHOOK_TOKEN",
}
"""Old names of variables. They are read for one more version, with a warning."""
_warned: Set[str] = set()
_LONGEST_TIMEOUT_S = 1_000_000
"""Eleven days. Sockets and threads have a longest wait."""


def variable(name: str) -> Optional[str]:
    """A variable of the environment. An empty variable is not set."""
    old = _OLD_NAMES[name]
    value = os.environ.get(name) or os.environ.get(old) or None
    if value is not None and not os.environ.get(name) and old not in _warned:
        _warned.add(old)
        words = f"{old} is deprecated. Set {name}."
        warnings.warn(words, FutureWarning, stacklevel=4)
    return value


@dataclass(frozen=True)
class Settings:
    url: str
    tokens: Mapping[str, Optional[str]] = field(repr=False)
    webhook_path: str = "/hooks"
    timeout: float = 120.0
    max_retries: int = 2
    headers: Mapping[str, str] = field(default_factory=lambda: {}, repr=False)
    ssl_context: Optional[ssl.SSLContext] = None

    def __post_init__(self) -> None:
        _check_timeout(self.timeout)
        _check_max_retries(self.max_retries)
        for door, (_, argument, name) in _TOKENS.items():
            token: Any = self.tokens.get(door)
            if token and not isinstance(token, str):
                raise ValueError(f"`{argument}` is not text.")
            if token and (token != token.strip() or _CONTROL.search(token)):
                raise ValueError(f"`{argument}` ({name}) holds a control character, or a space at an end.")

    def token_of(self, door: str, operation: str) -> str:
        """The token of a surface. Raises NoTokenError if there is none."""
        what, argument, name = _TOKENS[door]
        token = self.tokens.get(door)
        if token:
            return token
        detail = f"This call needs {what}. Pass `{argument}` to the client, or set {name}."
        raise NoTokenError("No token", operation=operation, detail=detail)

    def headers_for(self, door: str, operation: str, more: Mapping[str, Optional[str]]) -> Dict[str, str]:
        """The headers of a request, by their names in lower case."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        if door != "none":
            headers["authorization"] = f"Bearer {self.token_of(door, operation)}"
        headers.update({name: value for name, value in more.items() if value is not None})
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"The header {name!r} has a name or a value that HTTP cannot carry, such as a line break.")
        return headers


def _check_timeout(timeout: Any) -> None:
    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if not is_number or not 0 < timeout <= _LONGEST_TIMEOUT_S:
        raise ValueError(f"`timeout` is {timeout!r}. Pass a number of seconds above 0, and at most {_LONGEST_TIMEOUT_S:,}.")


def _check_max_retries(max_retries: Any) -> None:
    if not isinstance(max_retries, int) or isinstance(max_retries, bool) or max_retries < 0:
        raise ValueError(f"`max_retries` is {max_retries!r}. Pass a whole number of at least 0.")


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def tokens_of(key: Optional[str], rpc_token: Optional[str], webhook_token: Optional[str], *, anonymous: bool) -> Dict[str, Optional[str]]:
    """The given tokens, or else those of the environment. Raises NoTokenError if there are none."""
    given = {"rest": key, "rpc": rpc_token, "webhook": webhook_token}
    tokens = {door: given[door] or variable(name) for door, (_, _, name) in _TOKENS.items()}
    if not anonymous and not any(tokens.values()):
        detail = (
            "The client has no token. Pass `key`, `rpc_token` or `webhook_token`, or set REST_API_KEY, RPC_TOKEN or WEBHOOK_TOKEN. "
            "A client for calls that need none, such as `ops.healthz`, takes `anonymous=True`."
        )
        raise NoTokenError("No token", detail=detail)
    return tokens


def address_of(url: Optional[str]) -> str:
    """The address without a slash at its end. Raises a ValueError that shows how to write it."""
    given: Any = url or variable("GATEWAY_URL") or "http://127.0.0.1:18789"
    if not isinstance(given, str):
        raise ValueError(f"The gateway's url is not text. {_FORM}.")
    url = given
    shown = _without_secrets(url)
    if not re.match(r"https?://", url, re.IGNORECASE):
        near = re.sub(r"^([\w+.-]+:)?//+", "", shown)
        raise ValueError(f'The gateway\'s url "{shown}" does not begin with http:// or https://. {_FORM}, such as http://{near}.')
    if not _is_whole(url):
        raise ValueError(f'The gateway\'s url "{shown}" is not a url. {_FORM}.')
    parts = urlsplit(url)
    # Its user and password would appear in errors and logs.
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme.lower()}://{host}{parts.path.rstrip('/')}"


_FORM = "Write it as http://HOST:PORT or https://HOST"


def _is_whole(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if not host.isascii():
            host.encode("idna")
        is_host = all(0 < len(label) < 64 for label in host.rstrip(".").split("."))
        return is_host and parts.port != 0 and not re.search(r"[\s\x00-\x1f\x7f]", url)
    except ValueError:
        return False


def _without_secrets(url: str) -> str:
    """A url for an error: without a user, a password, a query or a fragment."""
    shown = re.sub(r"(?s)^([\w+.-]+://)?.*@", r"\1", url)
    return re.sub(r"[\x00-\x1f\x7f]", " ", re.split(r"[?#]", shown)[0])
