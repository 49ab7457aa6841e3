"""Calls an agent gateway: REST, JSON-RPC, WebSocket and webhooks."""

from . import errors, push_types, rest_types, rpc_types, webhooks
from ._client import Gateway
from ._error import (
    BadSignatureError,
    ClosedError,
    ConnectionFailedError,
    GatewayError,
    NoTokenError,
    NotAGatewayError,
    TimedOutError,
)
from ._http import OMIT, Omit
from ._reply import Page, ResponseInfo, request_id_of
from ._rpc import BatchResult
from ._rpc_socket import Pushes
from ._turn_stream import TurnStream
from .errors import *  # noqa: F403
from .rpc import Rpc, RpcSocket

__all__ = [
    "OMIT",
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
