"""The second factor of people who sign in with a password: codes by time (TOTP, RFC 6238), and recovery codes."""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from typing import Any

import pyotp
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction

from voiceapp.accounts.models import SecondFactor
from voiceapp.sealing import seal, unseal

ISSUER = "Voiceapp"
RECOVERY_CODES = 8
MOST_TYPED = 50
"""Characters of a code that are read: normalizing more may take minutes."""


def has_second_factor(user: User) -> bool:
    return bool(SecondFactor.objects.filter(user=user).exists())


def new_secret() -> str:
    return pyotp.random_base32()


def setup_address(user: User, secret: str) -> str:
    """Return the address that an authenticator app reads from a QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=user.get_username(), issuer_name=ISSUER)


@transaction.atomic
def turn_on(user: User, secret: str, code: str) -> list[str]:
    """Ask this person for codes from now on, and return their recovery codes; none if the code is wrong."""
    if not (step := _step(secret, code, after=0)):
        return []
    # Digits alone, which every keyboard has.
    codes = ["-".join(f"{secrets.randbelow(10_000):04}" for _ in range(5)) for _ in range(RECOVERY_CODES)]
    digests = [_digest(user, code) for code in codes]
    kept = {"sealed_secret": seal(secret), "last_step": step, "recovery_digests": digests}
    if not SecondFactor.objects.get_or_create(user=user, defaults=kept)[1]:
        return []
    note(user, "Set up two-factor authentication.")
    return codes


@transaction.atomic
def accepts(user: User, typed: str) -> bool:
    """Return whether this is a code of the person's. It counts once."""
    factor = SecondFactor.objects.select_for_update().filter(user=user).first()
    if factor is None:
        return False
    if step := _step(unseal(factor.sealed_secret) or "", typed, after=factor.last_step):
        factor.last_step = step
    elif (digest := _digest(user, typed)) in factor.recovery_digests:
        factor.recovery_digests.remove(digest)
        note(user, f"Used a recovery code; {len(factor.recovery_digests)} are left.")
    else:
        return False
    factor.save()
    return True


@transaction.atomic
def turn_off(user: User, how: str = "", by: User | None = None) -> bool:
    """Ask this person for a password only; False if that is so already."""
    if had := bool(SecondFactor.objects.filter(user=user).delete()[0]):
        note(user, f"Removed two-factor authentication{how}.", by)
    return had


def note(user: Any, message: str, by: Any = None) -> None:
    """Write into the audit what a person, or another, did about their login."""
    LogEntry.objects.create(
        user=by or user,
        content_type=ContentType.objects.get_for_model(user),
        object_id=user.pk,
        object_repr=str(user)[:200],
        action_flag=CHANGE,
        change_message=message,
    )


def _step(secret: str, typed: str, *, after: int) -> int:
    """Return the step of time that a code is of, at most one from now; 0 if it is of none, or not after the last."""
    try:
        step = pyotp.TOTP(secret).verify_and_get_timecode(_plain(typed), valid_window=1)
    except (pyotp.OTPVerificationError, ValueError):  # the latter where SECRET_KEY was lost, and the secret with it
        return 0
    return step if step > after else 0


def _digest(user: User, code: str) -> str:
    return hashlib.sha256(f"{user.pk} {_plain(code)}".encode()).hexdigest()


def _plain(typed: str) -> str:
    """Return the digits, in whichever groups and of whichever script they were typed."""
    return re.sub("[^0-9]", "", unicodedata.normalize("NFKC", typed[:MOST_TYPED]))
