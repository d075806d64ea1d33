"""The signature on a body, by the Standard Webhooks specification (github.com/standard-webhooks)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import UTC, datetime

from standardwebhooks import Webhook


def signature_headers(event_id: str, body: bytes, secrets: Sequence[str], now: datetime) -> dict[str, str]:
    """The three headers that a receiver verifies a body by; one signature for each secret, the newest first."""
    at = now.astimezone(UTC)
    text = body.decode()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(_signer(secret).sign(event_id, at, text) for secret in secrets),
    }


@functools.lru_cache(maxsize=64)
def _signer(secret: str) -> Webhook:
    return Webhook(secret)
