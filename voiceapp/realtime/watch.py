"""Which open conversations hold a key that may not be used any more: one query for all, every two seconds."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from django.conf import settings
from django.db import DatabaseError

from voiceapp.accounts.auth import revoked_keys

logger = logging.getLogger(__name__)

PERIOD_S = 2.0
"""A revoked key ends its conversations within five seconds: this, one query and the closing."""


class RevocationWatch:
    """Wakes the conversations of revoked keys. One per process, running only while somebody waits."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._holders: Counter[int] = Counter()
        self._loop: asyncio.Task[None] | None = None

    async def wait(self, key_id: int | None) -> None:
        """Return when the key is revoked, expired or gone; never for a caller without a key."""
        loop = asyncio.get_running_loop()
        if key_id is None or not settings.REVOKE_CLOSES_SESSIONS:
            await loop.create_future()
            return
        future = self._waiting.get(key_id)
        if future is None or future.get_loop() is not loop:
            future = self._waiting[key_id] = loop.create_future()
        self._holders[key_id] += 1
        if self._loop is None or self._loop.done() or self._loop.get_loop() is not loop:
            self._loop = loop.create_task(self._look(), name="revocation watch")
        try:
            await asyncio.shield(future)
        finally:
            self._holders[key_id] -= 1
            if not self._holders[key_id]:
                del self._holders[key_id]
                if self._waiting.get(key_id) is future:
                    del self._waiting[key_id]

    async def _look(self) -> None:
        while self._waiting:
            await asyncio.sleep(PERIOD_S)
            try:
                revoked = await revoked_keys(self._waiting)
            except DatabaseError:
                logger.exception("revoked keys could not be looked up")
                continue
            for key_id in revoked:
                future = self._waiting.get(key_id)
                if future is not None and not future.done():
                    future.set_result(None)


revocation_watch = RevocationWatch()
"""The watch of this process."""
