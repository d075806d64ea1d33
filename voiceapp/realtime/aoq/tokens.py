"""Grant tokens: JWTs signed with EdDSA, in the claims that stock MoQ relays verify (`root`, `put`, `get`, `exp`).

The key pair follows from SECRET_KEY, so every process of an installation has it, and another relay needs
the public half only (`manage.py runrelay --public-key`).
"""

from __future__ import annotations

import base64
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


def sign(sid: str, *, issued_at: float, expires_at: float, is_upstream: bool = False) -> str:
    """A token for one session; the times are epoch seconds.

    Another relay (`is_upstream`) refuses tokens with an audience that it does not know of.
    """
    claims = {
        "root": path_of(sid),
        "put": ["client"],
        "get": ["server"],
        "iat": int(issued_at),
        "exp": int(expires_at),
        "sid": sid,
        "iss": ISSUER,
        "jti": sid,
    }
    return _signed(claims if is_upstream else {**claims, "aud": AUDIENCE})


def sign_server(sid: str, *, issued_at: float, expires_at: float) -> str:
    """The token with which this server is the other side of a session at another relay."""
    times = {"iat": int(issued_at), "exp": int(expires_at)}
    return _signed({"root": path_of(sid), "put": ["server"], "get": ["client"], "iss": ISSUER, **times})


def _signed(claims: dict[str, Any]) -> str:
    key = _private_key(settings.SECRET_KEY)
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


def public_jwk() -> dict[str, Any]:
    """The public key as a JSON Web Key (RFC 8037), in the form that `moq-relay --auth-key` reads."""
    key = _private_key(settings.SECRET_KEY)
    x = base64.urlsafe_b64encode(_public_bytes(key)).rstrip(b"=").decode()
    return {"kty": "OKP", "crv": "Ed25519", "alg": ALGORITHM, "key_ops": ["verify"], "kid": _key_id(key), "x": x}


def _private_key(secret: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hmac.digest(secret.encode(), SALT, "sha256"))


def _public_bytes(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def _key_id(key: Ed25519PrivateKey) -> str:
    return hashlib.sha256(_public_bytes(key)).hexdigest()[:16]
