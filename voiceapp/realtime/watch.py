"""Which open conversations hold a key that may not be used any more: one query for all, every two seconds."""

from __future__ import annotations

import asyncio
import logging
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import Error as DatabaseFailure

from voiceapp.accounts.auth import revoked_keys

logger = logging.getLogger(__name__)

PERIOD_S = 2.0
"""A revoked key ends its conversations within five seconds: this, one query and the closing."""


class RevocationWatch:
    """Wakes the conversations of revoked keys. Belongs to one event loop, and runs only while somebody waits."""

    def __init__(self) -> None:
        self._waiting: dict[int, set[asyncio.Future[None]]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def wait(self, key_id: int | None) -> None:
        """Return when the key is revoked, expired or gone; never for a caller without a key."""
        revoked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if key_id is None or not settings.REVOKE_CLOSES_SESSIONS:
            await revoked
            return
        waiting = self._waiting.setdefault(key_id, set())
        waiting.add(revoked)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="revocation watch")
        try:
            await revoked
        finally:
            waiting.discard(revoked)
            if not waiting and self._waiting.get(key_id) is waiting:
                del self._waiting[key_id]
            if not self._waiting and self._looking is not None:
                self._looking.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                revoked = await revoked_keys(self._waiting)
            except DatabaseFailure:
                logger.exception("revoked keys could not be looked up")
                continue
            for key_id in revoked:
                for future in self._waiting.get(key_id, ()):
                    if not future.done():
                        future.set_result(None)


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, RevocationWatch] = WeakKeyDictionary()


def revocation_watch() -> RevocationWatch:
    """The watch of the running event loop: one in a server process."""
    return _watches.setdefault(asyncio.get_running_loop(), RevocationWatch())
