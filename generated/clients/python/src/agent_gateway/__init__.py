# Copied by "npm run generate" from scripts/generate/runtime/python/__init__.py; do not edit.
"""Calls an agent gateway: REST, JSON-RPC, WebSocket and webhooks."""

from . import errors, push_types, rest_types, rpc_types, webhooks
from ._async.client import AsyncGateway
from ._async.connection import AsyncPushes
from ._async.pages import AsyncPage, AsyncPages
from ._async.turn_stream import AsyncTurnStream
from ._error import (
    APIConnectionError,
    APIStatusError,
    BadSignatureError,
    ClosedError,
    ConnectionFailedError,
    GatewayError,
    NoTokenError,
    NotAGatewayError,
    TimedOutError,
)
from ._messages import BatchResult
from ._reply import Reply, ResponseInfo, request_id_of
from ._requests import OMIT, Omit
from ._sync.client import Gateway
from ._sync.connection import Pushes
from ._sync.pages import Page
from ._sync.turn_stream import TurnStream
from .async_rpc import AsyncRpc, AsyncRpcSocket
from .errors import *  # noqa: F403
from .rpc import Rpc, RpcSocket

__all__ = [
    "OMIT",
    "APIConnectionError",
    "APIStatusError",
    "AsyncGateway",
    "AsyncPage",
    "AsyncPages",
    "AsyncPushes",
    "AsyncRpc",
    "AsyncRpcSocket",
    "AsyncTurnStream",
    "BadSignatureError",
    "BatchResult",
    "ClosedError",
    "ConnectionFailedError",
    "Gateway",
    "GatewayError",
    "NoTokenError",
    "NotAGatewayError",
    "Omit",
    "Page",
    "Pushes",
    "Reply",
    "ResponseInfo",
    "Rpc",
    "RpcSocket",
    "TimedOutError",
    "TurnStream",
    "errors",
    "push_types",
    "request_id_of",
    "rest_types",
    "rpc_types",
    "webhooks",
]
