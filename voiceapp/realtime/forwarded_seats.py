"""The seats of sessions that were passed on to another service: held while their callers report that they talk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime

from django.db import Error as DatabaseFailure
from django.utils import timezone

from voiceapp.accounts.seats import Seat
from voiceapp.database.thread import DatabaseUnavailable, run_in_db_thread
from voiceapp.event_loops import per_loop
from voiceapp.realtime.lifetime.stale_sessions import SILENT, close_silent
from voiceapp.realtime.models import RealtimeSession

logger = logging.getLogger(__name__)

UNREPORTED_S = 600
"""Time for which an unreported session keeps its seat. A guest's keeps it for as long as guests may talk."""
PERIOD_S = 10.0
"""Between two looks at what was reported to other processes."""


@dataclass(slots=True)
class _Held:
    seat: Seat
    ends_at: float
    """Latest end of the session, by the clock of the event loop."""
    giving_back: asyncio.TimerHandle


class ForwardedSeats:
    """Belongs to one event loop. Looks at the rows of its sessions only while there are any."""

    def __init__(self, *, period_s: float = PERIOD_S, listening_since: datetime | None = None) -> None:
        """`listening_since`: from when on reports could be taken; now, unless it is known."""
        self._period_s = period_s
        self._held: dict[str, _Held] = {}
        self._looking: asyncio.Task[None] | None = None
        self._listening_since = listening_since or timezone.now()

    def hold(self, session_id: str, seat: Seat, *, is_guest: bool) -> None:
        """Give a seat back when its session ends or is reported no more; one that never is, after a while."""
        loop = asyncio.get_running_loop()
        held_s = seat.lifetime_s if is_guest else min(seat.lifetime_s, UNREPORTED_S)
        giving_back = loop.call_later(held_s, self.release, session_id)
        self._held[session_id] = _Held(seat, loop.time() + seat.lifetime_s, giving_back)
        if self._looking is None:
            # In a context of its own: that of the request names a thread for rows which ends with the request.
            self._looking = asyncio.create_task(self._look(), name="forwarded sessions", context=Context())

    def connected(self, session_id: str) -> None:
        """The session's caller talks: the seat is held until the session has to be over."""
        if (held := self._held.get(session_id)) is not None:
            held.giving_back.cancel()
            held.giving_back = asyncio.get_running_loop().call_at(held.ends_at, self.release, session_id)

    def release(self, session_id: str) -> None:
        """Give the seat back; harmless when it was given back, or is held by another process."""
        if (held := self._held.pop(session_id, None)) is not None:
            held.giving_back.cancel()
            held.seat.release()
            if not self._held and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    def close(self) -> None:
        """Give every seat back."""
        for session_id in tuple(self._held):
            self.release(session_id)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self._period_s)
            try:
                connected, over = await run_in_db_thread(_standing, tuple(self._held), self._listening_since)
            except (DatabaseFailure, DatabaseUnavailable) as error:
                self._listening_since = timezone.now()
                logger.warning("the reports of forwarded sessions could not be looked up: %s", error)
                continue
            for session_id in connected:
                self.connected(session_id)
            for session_id in over:
                self.release(session_id)


def _standing(session_ids: Collection[str], listening_since: datetime) -> tuple[list[str], list[str]]:
    """Return the sessions that are connected, and those that are over; one that is reported no more is closed first."""
    rows = RealtimeSession.objects.filter(pk__in=session_ids)
    silent_since = timezone.now() - SILENT
    if listening_since < silent_since:
        close_silent(rows, silent_since)
    return (
        list(rows.filter(ended_at__isnull=True, reported_at__isnull=False).order_by().values_list("pk", flat=True)),
        list(rows.filter(ended_at__isnull=False).order_by().values_list("pk", flat=True)),
    )


forwarded_seats = per_loop(ForwardedSeats)
"""Seats of the running event loop."""
