"""Identifiers and times as the wire shows them."""

from __future__ import annotations

import secrets
import time
import uuid
from datetime import UTC, datetime

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def identifier(prefix: str) -> str:
    """A new random identifier such as `sess_3f…` (prefix, underscore, 24 base-62-safe hexadecimal characters)."""
    return f"{prefix}_{secrets.token_hex(12)}"


def request_id() -> str:
    """A request identifier: a lower-case UUID, equal in body and `X-Request-ID`."""
    return str(uuid.uuid4())


def ulid() -> str:
    """A new ULID: 48 bits of milliseconds since 1970 and 80 random ones, as 26 digits of Crockford's base 32.

    In the order of their text they are in the order of their time, to the millisecond (github.com/ulid/spec).
    """
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def moment(at: datetime) -> str:
    """A time as ISO 8601 in UTC, to the millisecond: `2026-03-04T05:06:07.890Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
