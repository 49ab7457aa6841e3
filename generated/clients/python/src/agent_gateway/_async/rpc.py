# Copied by "npm run generate" from scripts/generate/runtime/python/_both/rpc.py; do not edit.
"""The RPC methods, over any transport."""

from __future__ import annotations

from typing import Any, Awaitable, Callable, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union

from .._failures import not_a_gateway, rpc_error
from .._messages import BatchResult, Message, batch_results, is_response, message_of, messages_in, notification_of, response_to, result_of, with_key
from .._reply import ResponseInfo, note_response, reply_of
from .._requests import Request, json_bytes
from .._settings import Settings
from .attempts import attempt
from .http import failure_of
from .pages import AsyncPage, AsyncPages, pages_of
from .transport import AsyncTransport

AsyncSend = Callable[[Union[Message, List[Message]], str], Awaitable[Tuple[List[Message], Optional[ResponseInfo]]]]
"""Sends one message, and returns the responses to its requests; over HTTP also the HTTP response."""


class AsyncRpcCalls:
    """Makes the calls of one client over HTTP or over a WebSocket."""

    def __init__(self, settings: Settings, send: AsyncSend, idempotent: FrozenSet[str]) -> None:
        self._settings = settings
        self._send = send
        self._idempotent = idempotent

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a method."""
        operation = f"rpc.{method}"
        keyed = with_key(method, params, self._idempotent)

        async def once() -> Any:
            request = message_of(method, keyed)
            responses, info = await self._send(request, operation)
            status = info.status if info else None
            response = response_to(request["id"], responses, operation, status)
            if "error" in response:
                raise rpc_error(response["error"], operation, status)
            if info:
                note_response(info)
            return reply_of(result_of(response, operation, status), info.request_id if info else "")

        key = keyed.get("idempotencyKey")
        return await attempt(self._settings, operation, once, is_repeatable=True, idempotency_key=key)

    def pages(self, method: str, items: str, params: Mapping[str, Any]) -> AsyncPages[Any, Any]:
        return pages_of(lambda: self._page(method, items, params))

    async def _page(self, method: str, items: str, params: Mapping[str, Any]) -> AsyncPage[Any, Any]:
        data = await self.call(method, params)

        def following(cursor: str) -> Awaitable[AsyncPage[Any, Any]]:
            return self._page(method, items, {**params, "cursor": cursor})

        return AsyncPage(data, items, following, "nextCursor", params.get("cursor"))

    async def notify(self, method: str, params: Optional[Mapping[str, Any]] = None) -> None:
        """Sends a notification, which gets no answer: the caller cannot know whether the call succeeded."""
        operation = f"rpc.{method}"
        message = notification_of(method, with_key(method, params or {}, self._idempotent))

        async def once() -> None:
            responses, info = await self._send(message, operation)
            for response in responses:
                if "error" in response:
                    raise rpc_error(response["error"], operation, info.status if info else None)

        await attempt(self._settings, operation, once, is_repeatable=True)

    async def batch(self, calls: Sequence[Tuple[str, Mapping[str, Any]]]) -> List[BatchResult]:
        """Sends several calls as one message: each a method and its params, named as in the contract.

        Each call succeeds or fails separately. The results are in the order of the calls.
        """
        if not calls:
            return []
        keyed = [(method, with_key(method, params, self._idempotent)) for method, params in calls]

        async def once() -> List[BatchResult]:
            requests = [message_of(method, params) for method, params in keyed]
            responses, info = await self._send(requests, "rpc.batch")
            return batch_results(requests, responses, info.status if info else None)

        return await attempt(self._settings, "rpc.batch", once, is_repeatable=True)


def async_send_by_http(settings: Settings, transport: AsyncTransport) -> AsyncSend:
    """One POST for each message."""

    async def send(message: Union[Message, List[Message]], operation: str) -> Tuple[List[Message], Optional[ResponseInfo]]:
        headers = settings.headers_for("rpc", operation, {"accept": "application/json", "content-type": "application/json"})
        request = Request("POST", f"{settings.url}/rpc", headers, json_bytes(message))
        response = await transport.send(request, settings.timeout)
        info = ResponseInfo(response.status, response.headers, response.request_id)
        if response.status == 204:
            await response.read()
            return [], info
        if not response.content_type.startswith("application/json"):
            if not response.is_success:
                raise await failure_of(response, operation)
            response.close()
            raise not_a_gateway(response, operation)
        responses = messages_in(await response.read())
        if not all(is_response(one) for one in responses):
            raise not_a_gateway(response, operation, "JSON-RPC")
        return responses, info

    return send
