"""Conversations whose key, login or account was revoked. One look for all, every
two seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import Error as DatabaseFailure
from django.db.models import QuerySet
from django.utils import timezone

from voiceapp.accounts.auth import Caller, revoked_keys
from voiceapp.accounts.models import Account
from voiceapp.event_loops import per_loop

logger = logging.getLogger(__name__)

PERIOD_S = 2.0
"""Interval of looks: a revocation ends its conversations within five seconds, queries and the closing included."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of an open conversation."""

    account_id: int
    key_id: int | None = None
    user_id: int | None = None
    session_key: str = ""
    """Key of the login: signing out deletes its row."""
    expires_at: datetime | None = None
    """Expiry of a temporary key that its sessions end with; None where expiry ends no session."""


def credentials_of(caller: Caller, session_key: str = "", *, expire: bool = False) -> Credentials:
    """`session_key` stays empty for callers with a key, and for guests; `expire` says whether those of a temporary key
    end when it expires."""
    expires_at = caller.expires_at if expire and caller.is_temporary else None
    return Credentials(caller.account_id, caller.key_id, caller.user_id, session_key, expires_at)


async def revoked(given: Iterable[Credentials]) -> set[Credentials]:
    """Return the credentials with a key that may not be used any more, a person or account that is not active or
    more there, or on a login that is over."""
    asked = set(given)
    accounts = await _gone(Account.objects.filter(is_active=True), {one.account_id for one in asked})
    users = await _gone(get_user_model().objects.filter(is_active=True), {one.user_id for one in asked} - {None})
    current = Session.objects.filter(expire_date__gt=timezone.now())
    logins = await _gone(current, {one.session_key for one in asked} - {""})
    keys = await revoked_keys({one.key_id for one in asked if one.key_id is not None})
    return {
        one
        for one in asked
        if one.account_id in accounts or one.user_id in users or one.session_key in logins or one.key_id in keys
    }


async def _gone(rows: QuerySet[Any], keys: set[Any]) -> set[Any]:
    """Return those of the primary keys that none of these rows has."""
    if not keys:
        return keys
    return keys - {pk async for pk in rows.filter(pk__in=keys).values_list("pk", flat=True)}


class RevocationWatch:
    """Wakes sessions whose credentials were revoked. Belongs to one event loop; runs only while a session waits."""

    def __init__(self) -> None:
        self._waiting: dict[Credentials, set[asyncio.Future[None]]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def wait(self, credentials: Credentials) -> None:
        """Return when the session may not go on."""
        if credentials.expires_at is None:
            await self._wait_revoked(credentials)
            return
        left_s = (credentials.expires_at - timezone.now()).total_seconds()
        with suppress(TimeoutError):  # by the clock, not by a look: the database may be away
            async with asyncio.timeout(max(0.0, left_s)):
                await self._wait_revoked(credentials)

    async def _wait_revoked(self, credentials: Credentials) -> None:
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(credentials, set())
        waiting.add(lost)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="revocation watch")
        try:
            await lost
        finally:
            waiting.discard(lost)
            if not waiting and self._waiting.get(credentials) is waiting:
                del self._waiting[credentials]
            if not self._waiting and self._looking is not None:
                self._looking.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                found = await revoked(self._waiting)
            except DatabaseFailure as error:
                logger.warning("revoked keys and logins could not be looked up: %s", error)
                continue
            for credentials in found:
                for future in self._waiting.get(credentials, ()):
                    if not future.done():
                        future.set_result(None)


revocation_watch = per_loop(RevocationWatch)
"""The watch of the running event loop: one in a server process."""
