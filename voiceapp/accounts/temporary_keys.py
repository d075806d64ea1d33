"""Temporary keys `st-…`: a key's rights for at most half an hour, for a place where the key itself must not go.

A temporary key is signed, not stored: when it expires, a random number and the digest of its key, under an HMAC by
SECRET_KEY. So checking one costs no row of its own, and every process of the installation
knows it. It leads to its key's row each time it is used, so it is revoked with its key, narrowed with it, and billed to
it. The digest says nothing about the key: that has 256 random bits. What this gives up is revoking one temporary key
alone, which the hosted service does not offer either (client libraries in use, section 8).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
import secrets
import struct
import time
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils.crypto import salted_hmac

PREFIX = "st-"
EPHEMERAL_PREFIX = "ek_"
"""Prefix of a client secret: a temporary key, and behind it, unsigned, the settings of its session."""
LONGEST_S = 1800
USUAL_S = 60

_SALT = "voiceapp.accounts.tokens"
_CONTENT = struct.Struct(">BI8s32s")
"""Rights, when it expires (Unix seconds), eight random bytes, SHA-256 of the key's text."""
_ALL_RIGHTS, _REALTIME_ONLY = 1, 2
_MAC_BYTES = 32
_FORM = re.compile(r"st-[A-Za-z0-9_-]{103}")
_SECRET_FORM = re.compile(r"ek_(st-[A-Za-z0-9_-]{103})([A-Za-z0-9_-]*)")
MAX_SECRET = 6000
"""Characters: a client secret travels in a header."""
MAX_SETTINGS_BYTES = 64 * 1024
"""Largest settings in a client secret, as JSON."""


def mint(digest: bytes, expires_at: int, *, realtime_only: bool = False) -> str:
    """A temporary key for the key with this digest, good until a Unix time in seconds."""
    rights = _REALTIME_ONLY if realtime_only else _ALL_RIGHTS
    content = _CONTENT.pack(rights, expires_at, secrets.token_bytes(8), digest)
    signed = content + _mac(content, settings.SECRET_KEY)
    return PREFIX + base64.urlsafe_b64encode(signed).rstrip(b"=").decode("ascii")


@dataclass(frozen=True, slots=True)
class TemporaryKey:
    digest: bytes
    """Digest of the key whose rights it has."""
    expires_at: datetime
    realtime_only: bool = False


def read(text: str, *, now: float | None = None) -> TemporaryKey | None:
    """Return the content of a temporary key; None if expired or not one of ours. `now` is in Unix seconds."""
    if not _FORM.fullmatch(text):
        return None
    try:
        signed = base64.urlsafe_b64decode(text[len(PREFIX) :] + "=")
    except binascii.Error:
        return None
    content, mac = signed[:-_MAC_BYTES], signed[-_MAC_BYTES:]
    # A key that was rotated still counts while SECRET_KEY_FALLBACKS names it, as for Django's own signatures.
    if not any(hmac.compare_digest(mac, _mac(content, key)) for key in _secret_keys()):
        return None
    rights, expires_at, _, digest = _CONTENT.unpack(content)
    current = time.time() if now is None else now
    if rights not in (_ALL_RIGHTS, _REALTIME_ONLY) or current >= expires_at:
        return None
    return TemporaryKey(bytes(digest), datetime.fromtimestamp(expires_at, UTC), rights == _REALTIME_ONLY)


def client_secret(temporary_key: str, settings_of_session: dict[str, Any]) -> str:
    """A temporary key that carries settings, which its holder may change: they give no rights.

    Raises:
        ValueError: if they are too large to travel in a header.
    """
    packed = zlib.compress(json.dumps(settings_of_session, separators=(",", ":")).encode(), 9)
    secret = EPHEMERAL_PREFIX + temporary_key + base64.urlsafe_b64encode(packed).rstrip(b"=").decode("ascii")
    if len(secret) > MAX_SECRET:
        raise ValueError("too large")
    return secret


def read_client_secret(text: str) -> tuple[str, dict[str, Any]]:
    """The temporary key and the settings in a client secret; any other key comes back as it is, without settings."""
    if (found := _SECRET_FORM.fullmatch(text)) is None:
        return text, {}
    packed = found[2]
    try:
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), MAX_SETTINGS_BYTES)
        read_settings = json.loads(unpacked)
    except (ValueError, zlib.error, RecursionError):
        return found[1], {}
    return found[1], read_settings if isinstance(read_settings, dict) else {}


def _secret_keys() -> list[str]:
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def _mac(content: bytes, secret_key: str) -> bytes:
    return bytes(salted_hmac(_SALT, content, secret=secret_key, algorithm="sha256").digest())
