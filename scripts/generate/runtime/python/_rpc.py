"""The RPC methods, over whatever carries their messages."""

from __future__ import annotations

import itertools
import json
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union, cast

from ._attempts import attempt
from ._error import GatewayError, NotAGatewayError
from ._failures import not_a_gateway, response_error, rpc_error
from ._reply import Page, ResponseInfo, reply_of, tell_response
from ._settings import Settings
from ._transport import Transport

Message = Dict[str, Any]
Send = Callable[[Union[Message, List[Message]], str], Tuple[List[Message], Optional[ResponseInfo]]]
"""Sends one message, and gives the responses to its requests. Over HTTP it gives the HTTP response, too."""


@dataclass(frozen=True)
class BatchResult:
    """The end of one call of a batch: its result, or the error that it ended with."""

    result: Any = None
    error: Optional[GatewayError] = None

    @property
    def ok(self) -> bool:
        return self.error is None


_ids = itertools.count(1)


class RpcCalls:
    """Makes the calls of one client over HTTP or over a WebSocket."""

    def __init__(self, settings: Settings, send: Send, idempotent: FrozenSet[str]) -> None:
        self._settings = settings
        self._send = send
        self._idempotent = idempotent

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a method."""
        operation = f"rpc.{method}"
        keyed = self._with_key(method, params)

        def once() -> Any:
            request = _request_of(method, keyed)
            responses, info = self._send(request, operation)
            status = info.status if info else None
            response = _response_to(request["id"], responses, operation, status)
            if "error" in response:
                raise rpc_error(response["error"], operation, status)
            if info:
                tell_response(info)
            return reply_of(response.get("result"), info.request_id if info else "")

        return attempt(self._settings, operation, once, is_repeatable=True, idempotency_key=keyed.get("idempotencyKey"))

    def page(self, method: str, items: str, params: Mapping[str, Any]) -> Page[Any, Any]:
        data = self.call(method, params)
        return Page(data, items, lambda cursor: self.page(method, items, {**params, "cursor": cursor}), data.get("nextCursor"))

    def notify(self, method: str, params: Optional[Mapping[str, Any]] = None) -> None:
        """Makes a call without asking for an answer. Nobody learns whether it was done."""
        operation = f"rpc.{method}"
        message = {"jsonrpc": "2.0", "method": method, "params": self._with_key(method, params or {})}

        def once() -> None:
            responses, info = self._send(message, operation)
            for response in responses:
                if "error" in response:
                    raise rpc_error(response["error"], operation, info.status if info else None)

        attempt(self._settings, operation, once, is_repeatable=True)

    def batch(self, calls: Sequence[Tuple[str, Mapping[str, Any]]]) -> List[BatchResult]:
        """Sends several calls as one message: each a method and its params, named as in the contract.

        Each succeeds or fails by itself. The results are in the order of the calls.
        """
        if not calls:
            return []
        keyed = [(method, self._with_key(method, params)) for method, params in calls]

        def once() -> List[BatchResult]:
            requests = [_request_of(method, params) for method, params in keyed]
            responses, info = self._send(requests, "rpc.batch")
            results: List[BatchResult] = []
            for request in requests:
                response = _response_to(request["id"], responses, "rpc.batch", info.status if info else None)
                error = rpc_error(response["error"], f"rpc.{request['method']}") if "error" in response else None
                results.append(BatchResult(response.get("result"), error))
            return results

        return attempt(self._settings, "rpc.batch", once, is_repeatable=True)

    def _with_key(self, method: str, params: Mapping[str, Any]) -> Message:
        """The params with an idempotency key, where the method takes one: the same for each attempt."""
        return {**({"idempotencyKey": str(uuid.uuid4())} if method in self._idempotent else {}), **params}


def send_by_http(settings: Settings, transport: Transport) -> Send:
    """One POST for each message."""

    def send(message: Union[Message, List[Message]], operation: str) -> Tuple[List[Message], Optional[ResponseInfo]]:
        headers = settings.headers_for("rpc", operation, accept="application/json", content_type="application/json")
        body = json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
        response = transport.send("POST", f"{settings.url}/rpc", headers, body, settings.timeout)
        info = ResponseInfo(response.status, response.headers, response.request_id)
        if response.status == 204:
            response.read()
            return [], info
        if not response.content_type.startswith("application/json"):
            if not response.is_success:
                raise response_error(response, operation)
            response.close()
            raise not_a_gateway(response, operation)
        responses = messages_in(response.read())
        if not all(is_response(one) for one in responses):
            raise not_a_gateway(response, operation)
        return responses, info

    return send


def messages_in(text: Union[str, bytes]) -> List[Any]:
    """The messages of a text: one, or the several of a batch."""
    found: Any = json.loads(text)
    return cast("List[Any]", found) if isinstance(found, list) else [found]


def is_response(message: Any) -> bool:
    return isinstance(message, dict) and "id" in message and ("result" in message or "error" in message)


def _request_of(method: str, params: Mapping[str, Any]) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": str(next(_ids))}


def _response_to(own_id: str, responses: Sequence[Message], operation: str, status: Optional[int]) -> Message:
    """The response to one request. Raises the error by which the message as a whole was refused."""
    for response in responses:
        if response["id"] == own_id:
            return response
    for response in responses:
        if response["id"] is None and "error" in response:
            raise rpc_error(response["error"], operation, status)
    detail = f"No response has the id {own_id}. Is this a gateway?"
    raise NotAGatewayError("Not a gateway's answer", operation=operation, status=status, detail=detail)
