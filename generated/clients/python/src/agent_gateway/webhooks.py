# Copied by "npm run generate" from scripts/generate/runtime/python/webhooks.py; do not edit.
"""Verifies the announcements of the gateway, and signs webhooks as other senders do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import uuid
from typing import TYPE_CHECKING, Dict, Iterable, Literal, Mapping, Optional, Sequence, Union, cast

from ._error import BadSignatureError
from ._reply import Reply

if TYPE_CHECKING:
    from .rest_types import Announcement

SignatureScheme = Literal["standard-webhooks", "github", "stripe", "slack"]
"""How senders sign. A mapping's ``verify.type`` has the same words."""

_TOLERANCE_S = 300


def unwrap(
    body: Union[str, bytes],
    headers: Mapping[str, Union[str, Sequence[str]]],
    secrets: Union[str, Iterable[str]],
) -> Announcement:
    """Verifies an announcement of the gateway and gives what it says.

    ``body`` must be the request's bytes or text as they came. With several secrets one must fit, so that a secret can be changed. Raises
    a BadSignatureError where the request is not to be trusted.
    """
    own_id = _header_of(headers, "webhook-id")
    timestamp = _header_of(headers, "webhook-timestamp")
    signatures = _header_of(headers, "webhook-signature").split(" ")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > _TOLERANCE_S:
        raise _refusal(
            f"`webhook-timestamp` is more than {_TOLERANCE_S} seconds from now. Is the clock right, or is it an old request?"
        )
    content = _bytes_of(body)
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        expected = _standard_signature(secret, own_id, timestamp, content).encode()
        if any(hmac.compare_digest(signature.encode(), expected) for signature in signatures):
            return cast("Announcement", json.loads(content, object_hook=Reply))
    raise _refusal(
        "The signature fits none of the secrets. Is it the secret of this channel, and is `body` exactly what was received?"
    )


def sign(
    body: Union[str, bytes],
    secret: str,
    *,
    scheme: SignatureScheme = "standard-webhooks",
    id: Optional[str] = None,
    timestamp: Optional[int] = None,
) -> Dict[str, str]:
    """The headers that a sender must set, so that a mapping with ``verify`` takes the request.

    ``body`` is exactly what is sent. ``id`` is the delivery's id, which the gateway takes as the idempotency key; without it a new one.
    ``timestamp`` is in seconds since 1970; without it now.
    """
    content = _bytes_of(body)
    moment = str(int(time.time()) if timestamp is None else timestamp)
    if scheme == "standard-webhooks":
        own_id = id or f"msg_{uuid.uuid4()}"
        signature = _standard_signature(secret, own_id, moment, content)
        return {"webhook-id": own_id, "webhook-timestamp": moment, "webhook-signature": signature}
    if scheme == "github":
        signature = _hmac(secret.encode(), content).hex()
        return {"x-github-delivery": id or str(uuid.uuid4()), "x-hub-signature-256": f"sha256={signature}"}
    if scheme == "stripe":
        signature = _hmac(secret.encode(), f"{moment}.".encode() + content).hex()
        return {"stripe-signature": f"t={moment},v1={signature}"}
    if scheme == "slack":
        signature = _hmac(secret.encode(), f"v0:{moment}:".encode() + content).hex()
        return {"x-slack-request-timestamp": moment, "x-slack-signature": f"v0={signature}"}
    raise ValueError(f"There is no scheme {scheme}. There are: standard-webhooks, github, stripe, slack.")


def _standard_signature(secret: str, own_id: str, timestamp: str, content: bytes) -> str:
    """As Standard Webhooks has it. The key is what follows ``whsec_`` in base64, otherwise the bytes of the text."""
    key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
    return "v1," + base64.b64encode(_hmac(key, f"{own_id}.{timestamp}.".encode() + content)).decode()


def _hmac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()


def _bytes_of(body: Union[str, bytes]) -> bytes:
    return body.encode() if isinstance(body, str) else body


def _header_of(headers: Mapping[str, Union[str, Sequence[str]]], name: str) -> str:
    for key, value in headers.items():
        if key.lower() == name and isinstance(value, str):
            return value
    raise _refusal(f"The header `{name}` is missing. Did the request come from the gateway?")


def _refusal(detail: str) -> BadSignatureError:
    return BadSignatureError("Bad signature", detail=detail)
