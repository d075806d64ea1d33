"""Which open conversations rest on something that was taken away: a key, a login, an account. One look for all, every
two seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import Error as DatabaseFailure
from django.utils import timezone

from voiceapp.accounts.auth import Caller, revoked_keys
from voiceapp.accounts.models import Account

logger = logging.getLogger(__name__)

PERIOD_S = 2.0
"""What is taken away ends its conversations within five seconds: this, a few queries and the closing."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a conversation rests on while it is open."""

    account_id: int
    key_id: int | None = None
    user_id: int | None = None
    session_key: str = ""
    """Of the login: signing out deletes its row."""


def standing_of(caller: Caller, session_key: str = "") -> Standing:
    """`session_key` stays empty for callers with a key, and for guests."""
    return Standing(caller.account_id, caller.key_id, caller.user_id, session_key)


async def fallen(standings: Iterable[Standing]) -> set[Standing]:
    """Which of these rest on a key that may not be used any more, on a person or an account that is not active or no
    more there, or on a login that is over."""
    asked = set(standings)
    accounts = {standing.account_id for standing in asked}
    users = {standing.user_id for standing in asked} - {None}
    keys = {standing.key_id for standing in asked if standing.key_id is not None}
    logins = {standing.session_key for standing in asked} - {""}
    accounts -= {
        pk async for pk in Account.objects.filter(pk__in=accounts, is_active=True).values_list("pk", flat=True)
    }
    if users:
        active = get_user_model().objects.filter(pk__in=users, is_active=True)
        users -= {pk async for pk in active.values_list("pk", flat=True)}
    if logins:
        current = Session.objects.filter(pk__in=logins, expire_date__gt=timezone.now())
        logins -= {pk async for pk in current.values_list("pk", flat=True)}
    keys = await revoked_keys(keys)
    return {
        standing
        for standing in asked
        if standing.account_id in accounts
        or standing.user_id in users
        or standing.session_key in logins
        or standing.key_id in keys
    }


class RevocationWatch:
    """Wakes conversations that have lost their standing. Belongs to one event loop, runs only while somebody waits."""

    def __init__(self) -> None:
        self._waiting: dict[Standing, set[asyncio.Future[None]]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def wait(self, standing: Standing) -> None:
        """Return when the conversation may not go on; never where the settings let it."""
        revoked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not settings.REVOKE_CLOSES_SESSIONS:
            await revoked
            return
        waiting = self._waiting.setdefault(standing, set())
        waiting.add(revoked)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="revocation watch")
        try:
            await revoked
        finally:
            waiting.discard(revoked)
            if not waiting and self._waiting.get(standing) is waiting:
                del self._waiting[standing]
            if not self._waiting and self._looking is not None:
                self._looking.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                found = await fallen(self._waiting)
            except DatabaseFailure:
                logger.exception("revoked keys and logins could not be looked up")
                continue
            for standing in found:
                for future in self._waiting.get(standing, ()):
                    if not future.done():
                        future.set_result(None)


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, RevocationWatch] = WeakKeyDictionary()


def revocation_watch() -> RevocationWatch:
    """The watch of the running event loop: one in a server process."""
    return _watches.setdefault(asyncio.get_running_loop(), RevocationWatch())
