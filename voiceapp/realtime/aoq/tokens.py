"""Grant tokens: JWTs signed with EdDSA, in the claims that stock MoQ relays verify (`root`, `put`, `get`, `exp`).

The key pair follows from SECRET_KEY, so every process of an installation has it.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

ALGORITHM = "EdDSA"
AUDIENCE = "aoq-relay"
ISSUER = "voiceapp"
SALT = b"voiceapp grant tokens"
MAX_TOKEN_CHARS = 2048


class TokenInvalid(Exception):
    """Not signed by this installation, or for another purpose."""


@dataclass(frozen=True, slots=True)
class GrantToken:
    sid: str
    root: str
    expires_at: float
    """Epoch seconds."""


def path_of(sid: str) -> str:
    """The path on a relay that belongs to a session."""
    return f"aoq/{sid}"


def sign(sid: str, *, issued_at: float, expires_at: float) -> str:
    """A token for one session; the times are epoch seconds."""
    key = _private_key(settings.SECRET_KEY)
    claims = {
        "root": path_of(sid),
        "put": ["client"],
        "get": ["server"],
        "iat": int(issued_at),
        "exp": int(expires_at),
        "sid": sid,
        "iss": ISSUER,
        "aud": AUDIENCE,
        "jti": sid,
    }
    return jwt.encode(claims, key, algorithm=ALGORITHM, headers={"kid": _key_id(key)})


def verify(text: str) -> GrantToken:
    """Read a token; whether it has expired is left to the caller, who has the clock.

    Raises:
        TokenInvalid: it is cut short, tampered with, for another audience, or signed with a key that is not ours.
    """
    if len(text) > MAX_TOKEN_CHARS:
        raise TokenInvalid
    required: Any = {"require": ["exp", "sid", "root", "aud", "iss"], "verify_exp": False, "verify_iat": False}
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        try:
            claims = jwt.decode(
                text,
                _private_key(secret).public_key(),
                algorithms=[ALGORITHM],
                audience=AUDIENCE,
                issuer=ISSUER,
                options=required,
            )
            return GrantToken(str(claims["sid"]), str(claims["root"]), float(claims["exp"]))
        except jwt.InvalidSignatureError:
            continue
        except (jwt.InvalidTokenError, ValueError, TypeError) as error:
            raise TokenInvalid from error
    raise TokenInvalid


def _private_key(secret: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hmac.digest(secret.encode(), SALT, "sha256"))


def _key_id(key: Ed25519PrivateKey) -> str:
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return hashlib.sha256(public).hexdigest()[:16]
