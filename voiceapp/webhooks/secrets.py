"""Signing secrets: made here, shown to their owner once, kept encrypted because every body is signed with them."""

from __future__ import annotations

import base64
import secrets
from contextlib import suppress

from voiceapp.errors import RequestRefused
from voiceapp.sealing import unseal

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


def decrypt(sealed: str) -> str:
    """The secret that was sealed.

    Raises:
        SecretLost: if it was sealed with a key that is not known any more.
    """
    if (secret := unseal(sealed)) is None:
        raise SecretLost
    return secret


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
