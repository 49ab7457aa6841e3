# Copied by "npm run generate" from scripts/generate/runtime/python/_messages.py; do not edit.
"""The messages of JSON-RPC. Does no I/O."""

from __future__ import annotations

import itertools
import json
import uuid
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Union, cast

from ._error import GatewayError, NotAGatewayError
from ._failures import rpc_error
from ._head import BrokenAnswer
from ._reply import Reply, kind_of

Message = Dict[str, Any]


@dataclass(frozen=True)
class BatchResult:
    """The outcome of one call of a batch: its result or its error."""

    result: Any = None
    error: Optional[GatewayError] = None

    @property
    def ok(self) -> bool:
        return self.error is None


_ids = itertools.count(1)


def message_of(method: str, params: Mapping[str, Any]) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": str(next(_ids))}


def notification_of(method: str, params: Mapping[str, Any]) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def with_key(method: str, params: Mapping[str, Any], idempotent: FrozenSet[str], key: Optional[str] = None) -> Message:
    """The params with an idempotency key, if the method accepts one: the same for each attempt."""
    return {**({"idempotencyKey": key or str(uuid.uuid4())} if method in idempotent else {}), **params}


def messages_in(text: Union[str, bytes]) -> List[Any]:
    """The messages of a text: one, or the several of a batch."""
    try:
        found: Any = json.loads(text, object_hook=Reply)
    except (ValueError, RecursionError) as broken:
        raise BrokenAnswer("a message is not JSON") from broken
    return cast("List[Any]", found) if isinstance(found, list) else [found]


def is_response(message: Any) -> bool:
    if not isinstance(message, dict) or "id" not in message:
        return False
    return isinstance(message["error"], dict) if "error" in message else "result" in message


def is_push(message: Any) -> bool:
    return isinstance(message, dict) and isinstance(message.get("method"), str) and isinstance(message.get("params", {}), dict)


def response_to(own_id: str, responses: Sequence[Message], operation: str, status: Optional[int]) -> Message:
    """The response to one request. Raises the error by which the complete message was refused."""
    for response in responses:
        if response["id"] == own_id:
            return response
    for response in responses:
        if response["id"] is None and "error" in response:
            raise rpc_error(response["error"], operation, status)
    detail = f"No response has the id {own_id}. Is this a gateway?"
    raise NotAGatewayError("Not a gateway's answer", operation=operation, status=status, detail=detail)


def result_of(response: Message, operation: str, status: Optional[int]) -> Reply:
    """The result of a call. Each method of the gateway returns an object."""
    result = response.get("result")
    if isinstance(result, Reply):
        return result
    detail = f"The result is {kind_of(result)} in place of an object. Is this a gateway?"
    raise NotAGatewayError("Not a gateway's answer", operation=operation, status=status, detail=detail)


def batch_results(requests: Sequence[Message], responses: Sequence[Message], status: Optional[int]) -> List[BatchResult]:
    """The outcome of each call of a batch, in the order of the calls."""
    results: List[BatchResult] = []
    for request in requests:
        response = response_to(request["id"], responses, "rpc.batch", status)
        error = rpc_error(response["error"], f"rpc.{request['method']}") if "error" in response else None
        results.append(BatchResult(response.get("result"), error))
    return results
