"""Identifiers and times as the wire shows them."""

from __future__ import annotations

import secrets
import uuid


def identifier(prefix: str) -> str:
    """A new random identifier such as `sess_3f…` (prefix, underscore, 24 base-62-safe hexadecimal characters)."""
    return f"{prefix}_{secrets.token_hex(12)}"


def request_id() -> str:
    """A request identifier: a lower-case UUID, equal in body and `X-Request-ID`."""
    return str(uuid.uuid4())
