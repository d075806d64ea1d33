"""Secrets as the database may hold them: encrypted, because they are used as they are and a digest would not do."""

from __future__ import annotations

import base64
import functools
from contextlib import suppress
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db.models import QuerySet


def seal(secret: str) -> str:
    return _cipher(_keys()).encrypt(secret.encode()).decode()


def unseal(sealed: str) -> str | None:
    """Return the secret that was sealed; None if it was sealed with a key that is not known any more."""
    with suppress(InvalidToken):
        return _unsealed(_keys(), sealed)
    return None


def reseal(sealed: str) -> str:
    """Return the secret sealed with the key that seals now; unchanged if that one has sealed it, or if it is lost."""
    keys = _keys()
    with suppress(InvalidToken):
        _cipher(keys[:1]).decrypt(sealed.encode())
        return sealed
    with suppress(InvalidToken):
        return _cipher(keys).rotate(sealed.encode()).decode()
    return sealed


def reseal_all(rows: QuerySet[Any], *names: str) -> int:
    """Seal fields of all rows with the present key, so that the one before may be forgotten; how many rows had that."""
    changed = 0
    for pk, *sealed in rows.values_list("pk", *names).iterator():
        was = dict(zip(names, sealed, strict=True))
        now = {name: reseal(secret) for name, secret in was.items()}
        if now != was:  # what is replaced meanwhile is sealed with that key already
            changed += rows.filter(pk=pk, **was).update(**now)
    return changed


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
