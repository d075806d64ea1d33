"""Signing secrets: made here, shown to their owner once, kept encrypted because every body is signed with them."""

from __future__ import annotations

import base64
import functools
import secrets
from contextlib import suppress

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from voiceapp.errors import RequestRefused

PREFIX = "whsec_"
SECRET_BYTES = 32
"""Standard Webhooks asks for 24 to 64."""


class SecretLost(RequestRefused):
    """A secret was sealed with a key that this installation does not know any more; its owner has to change it."""

    code = "SigningSecretLost"
    http_status = 409

    def __init__(self) -> None:
        super().__init__("The signing secret cannot be read with the server's present keys; reset it.")


def new_secret() -> str:
    """`whsec_` and 32 random bytes in standard base 64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def encrypt(secret: str) -> str:
    """A secret as the database may hold it."""
    return _cipher(_keys()).encrypt(secret.encode()).decode()


def decrypt(sealed: str) -> str:
    """The secret that was sealed.

    Raises:
        SecretLost: if it was sealed with a key that is not known any more.
    """
    try:
        return _unsealed(_keys(), sealed)
    except InvalidToken:
        raise SecretLost from None


def reencrypt(sealed: str) -> str:
    """Return the secret sealed with the key that seals now; unchanged if that one has sealed it, or if it is lost."""
    keys = _keys()
    with suppress(InvalidToken):
        _cipher(keys[:1]).decrypt(sealed.encode())
        return sealed
    with suppress(InvalidToken):
        return _cipher(keys).rotate(sealed.encode()).decode()
    return sealed


def decrypt_both(sealed: str, old_sealed: str) -> list[str]:
    """Return the secrets that sign a body: the current one, and the one before it where it can be read.

    Raises:
        SecretLost: if the first cannot be read.
    """
    known = [decrypt(sealed)]
    if old_sealed:
        with suppress(SecretLost):  # the new one signs all the same
            known.append(decrypt(old_sealed))
    return known


@functools.lru_cache(maxsize=256)
def _unsealed(keys: tuple[str, ...], sealed: str) -> str:
    return _cipher(keys).decrypt(sealed.encode()).decode()


def _keys() -> tuple[str, ...]:
    """The first one seals; SECRET_KEY's fallbacks open what was sealed before it was changed."""
    own = [settings.WEBHOOK_SECRET_KEY] if settings.WEBHOOK_SECRET_KEY else []
    return (*own, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


@functools.lru_cache(maxsize=4)
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([_fernet(key) for key in keys])


def _fernet(key: str) -> Fernet:
    """Never the key itself: what is known of one use of it must tell nothing about another."""
    derivation = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"voiceapp.webhooks.secrets")
    return Fernet(base64.urlsafe_b64encode(derivation.derive(key.encode())))
