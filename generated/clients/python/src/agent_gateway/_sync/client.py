# Made by "npm run generate" from scripts/generate/runtime/python/_both/client.py; do not edit.
"""One client for all surfaces of a gateway."""

from __future__ import annotations

import ssl
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Tuple, TypeVar

from .._reply import ResponseInfo, responses_noted
from .._settings import Settings, address_of, tokens_of
from ..rest import RestCalls
from ..rpc import Rpc
from .http import Http
from .transport import Transport

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    Given = ParamSpec("Given")
Result = TypeVar("Result")


class Gateway(RestCalls):
    """Calls a gateway. Any number of threads may share one.

    :param url: The gateway's address, such as ``http://127.0.0.1:18789``. By default ``GATEWAY_URL``, or else this machine.
    :param key: A key for the REST calls. Otherwise ``REST_API_KEY``.
    :param rpc_token: A token for the RPC methods. Otherwise ``RPC_TOKEN``.
    :param webhook_token: The token for webhooks. Otherwise ``WEBHOOK_TOKEN``.
    :param webhook_path: The gateway's ``webhooks.path``.
    :param timeout: The seconds that one attempt may take.
    :param max_retries: How often a call is tried again.
    :param headers: Headers for each call.
    :param ssl_context: Trusts other certificates than the system's.
    :param anonymous: The client makes only calls that need no token, such as ``ops.healthz``. Without it, a client with no token is refused.
    """

    rpc: Rpc
    """The RPC methods."""

    def __init__(
        self,
        *,
        url: Optional[str] = None,
        key: Optional[str] = None,
        rpc_token: Optional[str] = None,
        webhook_token: Optional[str] = None,
        webhook_path: str = "/hooks",
        timeout: float = 120.0,
        max_retries: int = 2,
        headers: Optional[Mapping[str, str]] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
        anonymous: bool = False,
    ) -> None:
        settings = Settings(
            url=address_of(url),
            tokens=tokens_of(key, rpc_token, webhook_token, anonymous=anonymous),
            webhook_path=webhook_path,
            timeout=timeout,
            max_retries=max_retries,
            headers=headers or {},
            ssl_context=ssl_context,
        )
        transport = Transport(settings.url, ssl_context)
        self._begin(settings, transport, None)

    def __repr__(self) -> str:
        return f"Gateway(url={self._settings.url!r})"

    def _begin(self, settings: Settings, transport: Transport, idempotency_key: Optional[str]) -> None:
        self._settings = settings
        self._transport = transport
        super().__init__(Http(settings, transport, idempotency_key))
        self.rpc = Rpc(settings, transport)

    def with_options(
        self,
        *,
        timeout: Optional[float] = None,
        max_retries: Optional[int] = None,
        headers: Optional[Mapping[str, str]] = None,
        idempotency_key: Optional[str] = None,
    ) -> Gateway:
        """The same client with other options, for one call or more. It shares the connections of this one: closing one closes both."""
        own = self._settings
        other = Gateway.__new__(Gateway)
        settings = replace(
            own,
            timeout=own.timeout if timeout is None else timeout,
            max_retries=own.max_retries if max_retries is None else max_retries,
            headers={**own.headers, **(headers or {})},
        )
        other._begin(settings, self._transport, idempotency_key)
        return other

    def with_response(
        self, call: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
    ) -> Tuple[Result, ResponseInfo]:
        """Makes a call of this client over HTTP, and returns the HTTP response with the reply.

        ``reply, response = gateway.with_response(gateway.chat.send, message="Hello")``
        """
        with responses_noted() as heard:
            result = call(*args, **kwargs)
        if not heard:
            raise TypeError("The call has no HTTP response of its own: streams and WebSockets have none.")
        return result, heard[-1]

    def close(self) -> None:
        """Closes the client: a later call raises a ``ClosedError``. Running calls and streams continue to their end. Sockets have their own ``close``."""
        self._transport.close()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
