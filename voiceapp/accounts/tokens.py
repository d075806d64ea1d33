"""Temporary tokens `st-…`: a key's rights for at most half an hour, for a place where the key itself must not go.

A token is signed, not stored: when it ends, a random number and the digest of its key, under an HMAC by SECRET_KEY.
So one costs no row to make, nothing to purge and nothing to list, and every process of the installation knows it. It
leads to its key's row each time it is used, so it is revoked with its key, narrowed with it, and billed to it. The
digest says nothing about the key: that has 256 random bits. What this gives up is revoking one token alone, which the
hosted service does not offer either (client libraries in use, section 8).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
import struct
import time

from django.conf import settings
from django.utils.crypto import salted_hmac

PREFIX = "st-"
LONGEST_S = 1800
USUAL_S = 60

_SALT = "voiceapp.accounts.tokens"
_CONTENT = struct.Struct(">BI8s32s")
"""Version, when it ends (Unix seconds), eight random bytes, SHA-256 of the key's text."""
_VERSION = 1
_MAC_BYTES = 32
_FORM = re.compile(r"st-[A-Za-z0-9_-]{103}")


def mint(digest: bytes, expires_at: int) -> str:
    """A token for the key with this digest, good until a Unix time in seconds."""
    content = _CONTENT.pack(_VERSION, expires_at, secrets.token_bytes(8), digest)
    signed = content + _mac(content, settings.SECRET_KEY)
    return PREFIX + base64.urlsafe_b64encode(signed).rstrip(b"=").decode("ascii")


def key_digest(text: str, *, now: float | None = None) -> bytes | None:
    """The digest of the key behind a token; None when it is over, or no token of ours."""
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
    version, expires_at, _, digest = _CONTENT.unpack(content)
    current = time.time() if now is None else now
    return bytes(digest) if version == _VERSION and current < expires_at else None


def _secret_keys() -> list[str]:
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def _mac(content: bytes, secret_key: str) -> bytes:
    return bytes(salted_hmac(_SALT, content, secret=secret_key, algorithm="sha256").digest())
