"""Identifiers and times as the wire shows them, durations and sizes in words."""

from __future__ import annotations

import re
import secrets
import time
import uuid
from datetime import UTC, datetime
from decimal import Decimal

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


_UNITS = ((3600, "hour"), (60, "minute"), (1, "second"))


def duration(seconds: float) -> str:
    """A length of time in words, to the second: `2 hours`, `1 minute 30 seconds`, `less than a second`."""
    left = int(seconds)
    words = []
    for length, name in _UNITS:
        count, left = divmod(left, length)
        if count:
            words.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " ".join(words) or "less than a second"


_OTHER_CODES = {"in": "id", "iw": "he", "ji": "yi", "jv": "jw", "nb": "no"}
"""Codes of languages that recognizers know by another one."""


def language_code(tag: str) -> str:
    """The ISO 639-1 code of a language tag: `de` of `de-AT` and of `DE_at`."""
    code = re.split("[-_]", tag.lower())[0]
    return _OTHER_CODES.get(code, code)


class Facts:
    """Facts at the end of a log line: `account=7 caller='my laptop'` in text, fields of their own in JSON.

    Empty ones are left out.
    """

    def __init__(self, **fields: object) -> None:
        self.fields = {name: value for name, value in fields.items() if value not in (None, "")}

    def __str__(self) -> str:
        return " ".join(f"{name}={_word(str(value))}" for name, value in self.fields.items())


def _word(text: str) -> str:
    return text if re.fullmatch(r"[\w.:/@+-]+", text) else repr(text[:200])


_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")


def size(count: int) -> str:
    """A number of bytes in words: `5 GiB`, `1.5 MiB`, `12 bytes`."""
    number, unit = float(count), 0
    while number >= 1024 and unit < len(_SIZES) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f}".removesuffix(".0") + f" {_SIZES[unit]}"


def one_line(text: object, limit: int = 300) -> str:
    """A caller's words for the log: on one line whatever they hold, and no longer than `limit` characters.

    What is no printable ASCII is escaped as in a Python string.
    """
    words = str(text)
    escaped = words[:limit].encode("unicode_escape").decode("ascii")
    return escaped if len(words) <= limit and len(escaped) <= limit else f"{escaped[: limit - 1]}…"


NANO = 1_000_000_000
"""Nano-dollars of a dollar."""


def dollars(nano: int) -> str:
    """Format nano-dollars as dollars, with two decimals at least and no more zeros than that."""
    digits = f"{Decimal(nano) / NANO:.9f}"
    return digits[:-7] + digits[-7:].rstrip("0")
