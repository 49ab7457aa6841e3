# Copied by "npm run generate" from scripts/generate/runtime/python/webhooks.py; do not edit.
"""Verifies the announcements and notifications of the gateway, and signs webhooks like other senders."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
import uuid
from collections.abc import Iterable as AnyIterable
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Literal, Mapping, Optional, Sequence, Union, cast
from urllib.parse import parse_qsl

from ._error import BadSignatureError
from ._reply import Reply

if TYPE_CHECKING:
    from .rest_types import (
        AgentNotification,
        Announcement,
        BudgetNotification,
        CompletedTurnNotification,
        DeadAnnouncementNotification,
        DeadEventNotification,
        HealthNotification,
        KeyNotification,
        TestNotification,
        TurnNotification,
    )

    GatewayEvent = Union[
        CompletedTurnNotification,
        TurnNotification,
        DeadEventNotification,
        DeadAnnouncementNotification,
        AgentNotification,
        KeyNotification,
        BudgetNotification,
        HealthNotification,
        TestNotification,
    ]
    """An event for an endpoint of ``notify``. New types may be added: respond with 2xx to unknown types."""

SignatureScheme = Literal["standard-webhooks", "github", "stripe", "slack", "linear", "twilio"]
"""The signature schemes. They have the names of a mapping's ``verify.type``."""

_TOLERANCE_S = 300


def unwrap(
    body: Union[str, bytes],
    headers: Mapping[str, Union[str, Sequence[str]]],
    secrets: Union[str, Iterable[str]],
) -> Announcement:
    """Verifies an announcement of the gateway and returns its content.

    ``body`` must be the request's bytes or text as they came. With several secrets, one must match, so that a secret can be changed. Raises
    a BadSignatureError if the request cannot be trusted, and a ValueError if a secret is empty or damaged.
    """
    return cast("Announcement", json.loads(_verified(body, headers, secrets), object_hook=Reply))


def unwrap_event(
    body: Union[str, bytes],
    headers: Mapping[str, Union[str, Sequence[str]]],
    secrets: Union[str, Iterable[str]],
) -> GatewayEvent:
    """Verifies a notification of the gateway like ``unwrap``, and returns its event."""
    return cast("GatewayEvent", json.loads(_verified(body, headers, secrets), object_hook=Reply))


def _verified(
    body: Union[str, bytes],
    headers: Mapping[str, Union[str, Sequence[str]]],
    secrets: Union[str, Iterable[str]],
) -> bytes:
    keys = _keys_of(secrets)
    own_id = _header_of(headers, "webhook-id")
    timestamp = _header_of(headers, "webhook-timestamp")
    signatures = _header_of(headers, "webhook-signature").split(" ")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or abs(time.time() - int(timestamp)) > _TOLERANCE_S:
        raise _refusal(
            f"`webhook-timestamp` is more than {_TOLERANCE_S} seconds from now. Check the clock."
        )
    content = _bytes_of(body)
    for key in keys:
        expected = _standard_signature(key, own_id, timestamp, content).encode()
        if any(hmac.compare_digest(_bytes_of(signature), expected) for signature in signatures):
            return content
    raise _refusal(
        "The signature does not match any of the secrets. Pass the secret of the channel or endpoint, and the unmodified body."
    )


def sign(
    body: Union[str, bytes],
    secret: str,
    *,
    scheme: SignatureScheme = "standard-webhooks",
    id: Optional[str] = None,
    timestamp: Optional[int] = None,
    url: Optional[str] = None,
) -> Dict[str, str]:
    """The headers that a sender must set for a mapping with ``verify``.

    ``body`` is exactly the sent text. With ``linear`` it must have the current time, in milliseconds, as ``webhookTimestamp``. With ``twilio`` it is a
    form or JSON, and ``url`` is required: the ``verify.url`` of the mapping. ``id`` is the delivery's id, which the gateway uses as the idempotency
    key; by default a new one. ``timestamp`` is in seconds since 1970; by default now.
    """
    content, key = _bytes_of(body), _checked(secret)
    moment = str(int(time.time()) if timestamp is None else timestamp)
    if scheme == "standard-webhooks":
        own_id = id or f"msg_{uuid.uuid4()}"
        signature = _standard_signature(_key_of(secret), own_id, moment, content)
        return {"webhook-id": own_id, "webhook-timestamp": moment, "webhook-signature": signature}
    if scheme == "github":
        signature = _hmac(key, content).hex()
        return {"x-github-delivery": id or str(uuid.uuid4()), "x-hub-signature-256": f"sha256={signature}"}
    if scheme == "stripe":
        signature = _hmac(key, f"{moment}.".encode() + content).hex()
        return {"stripe-signature": f"t={moment},v1={signature}"}
    if scheme == "slack":
        signature = _hmac(key, f"v0:{moment}:".encode() + content).hex()
        return {"x-slack-request-timestamp": moment, "x-slack-signature": f"v0={signature}"}
    if scheme == "linear":
        return {"linear-delivery": id or str(uuid.uuid4()), "linear-signature": _hmac(key, content).hex()}
    if scheme == "twilio":
        if not url:
            raise ValueError("Twilio signs the address. Pass `url`, the `verify.url` of the mapping.")
        mac = hmac.new(key, (url + _twilio_text(content, url)).encode(), hashlib.sha1)
        signature = base64.b64encode(mac.digest()).decode()
        return {"i-twilio-idempotency-token": id or str(uuid.uuid4()), "x-twilio-signature": signature}
    raise ValueError(
        "`scheme` must be standard-webhooks, github, stripe, slack, linear or twilio."
    )


def _twilio_text(body: bytes, url: str) -> str:
    """The text that Twilio signs after the address: the sorted fields of a form, or the hash of JSON as a parameter of the address."""
    text = body.decode()
    if text.lstrip().startswith(("{", "[")):
        return f"{'&' if '?' in url else '?'}bodySHA256={hashlib.sha256(body).hexdigest()}"
    return "".join(name + value for name, value in sorted(set(parse_qsl(text, keep_blank_values=True))))


def _keys_of(secrets: Any) -> List[bytes]:
    is_one = isinstance(secrets, (str, bytes)) or not isinstance(secrets, AnyIterable)
    keys = [_key_of(secret) for secret in cast("Iterable[Any]", [secrets] if is_one else secrets)]
    if not keys:
        raise ValueError("Pass the secret of the channel or endpoint.")
    return keys


def _key_of(secret: Any) -> bytes:
    """The key of a Standard Webhooks secret: after ``whsec_`` its bytes in base64, otherwise the bytes of the text."""
    plain = _checked(secret)
    if not plain.startswith(b"whsec_"):
        return plain
    text = plain[6:].decode("latin-1").rstrip("=")
    if not re.fullmatch(r"[A-Za-z0-9+/]{2,}", text) or len(text) % 4 == 1:
        raise ValueError("The secret begins with `whsec_`, and the rest is not base64. Pass the whole secret, as it was shown.")
    return base64.b64decode(text + "=" * (-len(text) % 4))


def _checked(secret: Any) -> bytes:
    """Refuses an empty secret: anyone could sign with it."""
    if not isinstance(secret, str):
        raise ValueError(f"A secret is text, not {type(secret).__name__}.")
    if secret.strip() == "":
        raise ValueError("The secret is empty. Pass the whole secret, as it was shown.")
    return secret.encode()


def _standard_signature(key: bytes, own_id: str, timestamp: str, content: bytes) -> str:
    return "v1," + base64.b64encode(_hmac(key, _bytes_of(f"{own_id}.{timestamp}.") + content)).decode()


def _hmac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()


def _bytes_of(body: Union[str, bytes]) -> bytes:
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body


def _header_of(headers: Mapping[str, Union[str, Sequence[str]]], name: str) -> str:
    for key, value in headers.items():
        if key.lower() == name and isinstance(value, str):
            return value
    raise _refusal(f"The header `{name}` is missing.")


def _refusal(detail: str) -> BadSignatureError:
    return BadSignatureError("Bad signature", detail=detail)
