"""API keys: minting, checking without the database, and finding who a key belongs to.

A key is `sk-`, 43 base64url characters (256 random bits) and a tail of 6 base-62 digits: the CRC-32 of all before it.
The tail settles typing errors and lets leak scanners recognise a key without asking anybody. Only the SHA-256 is
stored. A key is found by looking its digest up in a unique index, so nothing about it can be learnt from timing, and
a slow hash would give 256 random bits nothing but give a flood a lever.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
import secrets
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone

from voiceapp.accounts.caller import Caller
from voiceapp.accounts.models import ApiKey, Workspace
from voiceapp.database.patience import waits_at_most

logger = logging.getLogger(__name__)

PREFIX = "sk-"
SHOWN_PREFIX_LENGTH = 7
SHOWN_TAIL_LENGTH = 4
USE_RECORDED_EVERY = timedelta(minutes=1)
RECORD_WAIT_S = 0.5
"""Time that a call waits until its key's use is recorded; the next call tries again."""

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORM = re.compile(r"sk-[A-Za-z0-9_-]{43}[A-Za-z0-9]{6}")


def _tail(body: str) -> str:
    number = zlib.crc32(body.encode("ascii"))
    digits = ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _DIGITS[digit] + digits
    return digits


def mint() -> str:
    """The text of a new key: 52 characters, shown to its owner once and not stored."""
    body = PREFIX + secrets.token_urlsafe(32)
    return body + _tail(body)


def parse(text: str) -> bytes | None:
    """The 32-byte digest under which a key is stored, or None when the text cannot be one of our keys."""
    if not _FORM.fullmatch(text) or not secrets.compare_digest(text[-6:], _tail(text[:-6])):
        return None
    return hashlib.sha256(text.encode("ascii")).digest()


def new_key(
    workspace: Workspace, name: str, *, scopes: list[str] | None = None, expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """An unsaved row and the key's text, which exists nowhere else."""
    row = ApiKey(workspace=workspace, name=name, expires_at=expires_at)
    if scopes is not None:
        row.scopes = scopes
    return row, give_secret(row)


def give_secret(row: ApiKey) -> str:
    """Mint a key for an unsaved row, fill in what the row keeps of it and return its text."""
    text = mint()
    digest = parse(text)
    assert digest is not None, "a minted key is well formed"
    row.digest = digest
    row.prefix = text[:SHOWN_PREFIX_LENGTH]
    row.last_four = text[-SHOWN_TAIL_LENGTH:]
    return text


class KeyDirectory:
    """Finds keys by digest, remembering hits and misses for a few seconds so that a burst costs one query.

    A revocation is therefore noticed within `lifetime_s` at the latest; an expiry at once. Memory is bounded: beyond
    `capacity` the oldest answers are forgotten.
    """

    def __init__(
        self,
        *,
        lifetime_s: float = 5.0,
        capacity: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], datetime] = timezone.now,
    ) -> None:
        self._lifetime_s = lifetime_s
        self._capacity = capacity
        self._clock = clock
        self._today = today
        self._answers: OrderedDict[bytes, tuple[float, Caller | None]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def forget(self) -> None:
        """Ask the database again for every key: something was revoked in this process."""
        self._answers.clear()

    async def find(self, digest: bytes) -> Caller | None:
        """Return the caller of the usable key with this digest: not expired, not revoked, of an active account."""
        now = self._clock()
        asked_at, known = self._answers.get(digest, (-math.inf, None))
        if now - asked_at >= self._lifetime_s:
            known = await _look_up(digest, self._today())
            self._remember(digest, now, known)
        if known is not None and known.expires_at is not None and known.expires_at <= self._today():
            return None
        return known

    def _remember(self, digest: bytes, now: float, known: Caller | None) -> None:
        self._answers[digest] = (now, known)
        self._answers.move_to_end(digest)
        while len(self._answers) > self._capacity:
            self._answers.popitem(last=False)


async def _look_up(digest: bytes, now: datetime) -> Caller | None:
    row = await ApiKey.objects.select_related("workspace__account").filter(digest=digest).afirst()
    if row is None or not row.is_usable(now) or not row.workspace.account.is_active:
        return None
    if row.last_used_at is None or row.last_used_at <= now - USE_RECORDED_EVERY:
        await _record_use(row.pk, now)
    return Caller.of(row)


async def _record_use(key_id: int, now: datetime) -> None:
    """Conditional, so that many processes write once a minute together. A caller is not refused because it failed."""
    due = Q(last_used_at__isnull=True) | Q(last_used_at__lte=now - USE_RECORDED_EVERY)
    try:
        with waits_at_most(RECORD_WAIT_S):
            await ApiKey.objects.filter(due, pk=key_id).aupdate(last_used_at=now)
    except DatabaseError:
        logger.warning("could not record the use of key %d", key_id, exc_info=True)
