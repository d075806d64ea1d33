"""The lease of this process, and what processes leave behind whose lease is over.

A process renews its lease while it lives. One that was killed, or whose host is gone, does not, and any other closes
its conversations and frees its seats. The clock is the database's: hosts need not agree on the time.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import NoReturn

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from voiceapp.database.thread import DatabaseUnavailable, run_in_records_thread
from voiceapp.realtime.close_codes import ABANDONED
from voiceapp.realtime.lifetime.processes import own_name
from voiceapp.realtime.lifetime.stale_sessions import SILENT, close_rows, close_silent
from voiceapp.realtime.models import HeldSeat, RealtimeSession, ServerProcess, TransportKind

logger = logging.getLogger(__name__)

RENEWALS = 6
"""Renewals within the time of a lease."""


async def keep_lease() -> NoReturn:
    """Renew the lease of this process and close what others left behind, until cancelled."""
    while True:
        try:
            await run_in_records_thread(renew)
            await run_in_records_thread(close_abandoned)
        except (DatabaseFailure, DatabaseUnavailable) as error:  # such as one before its first migration
            logger.warning("process %s: its lease waits for the database: %s", own_name(), error)
        await asyncio.sleep(settings.TASK_LEASE_S / RENEWALS)


def renew() -> None:
    """Hold the lease for another while."""
    until = Now() + _lease()
    if not _own().filter(lease_until__gt=Now()).update(lease_until=until):
        ServerProcess.objects.update_or_create(name=own_name(), defaults={"held_since": Now(), "lease_until": until})


def gone() -> QuerySet[ServerProcess]:
    """Processes whose lease is over."""
    return ServerProcess.objects.filter(lease_until__lte=Now())


def close_abandoned() -> int:
    """End the conversations of processes that are gone, and of callers who report no more; returns how many.

    Where the database was away, no process could renew its lease, and no caller be heard: nothing is ended before this
    process has held its own for as long again.
    """
    closed = 0
    if _has_held_for(_lease()):
        for name in gone().values_list("name", flat=True):
            rows = RealtimeSession.objects.filter(served_by=name, ended_at__isnull=True)
            lost = close_rows(
                rows.exclude(transport=TransportKind.RELAYED),
                ended_at=timezone.now(),
                close_code=ABANDONED,
                close_reason="The server process ended without a goodbye.",
            )
            HeldSeat.objects.filter(held_by=name).delete()
            gone().filter(name=name).delete()
            if lost:
                logger.warning("process %s: its lease is over, %d conversations are closed", name, lost)
            closed += lost
    if _has_held_for(SILENT):
        closed += close_silent(timezone.now())
    return closed


def _own() -> QuerySet[ServerProcess]:
    return ServerProcess.objects.filter(name=own_name())


def _has_held_for(span: timedelta) -> bool:
    return bool(_own().filter(held_since__lte=Now() - span).exists())


def _lease() -> timedelta:
    return timedelta(seconds=settings.TASK_LEASE_S)
