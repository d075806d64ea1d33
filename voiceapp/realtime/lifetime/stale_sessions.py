"""Rows of conversations that no process will end: their process died, or another service held them."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from voiceapp.database.thread import DatabaseUnavailable, run_in_db_thread
from voiceapp.realtime.close_codes import ABANDONED
from voiceapp.realtime.lifetime.processes import is_gone
from voiceapp.realtime.models import HeldSeat, RealtimeSession, TransportKind
from voiceapp.realtime.records import webhook_events

logger = logging.getLogger(__name__)

LATE = timedelta(minutes=5)
"""Time after its longest duration in which a conversation may still write its end."""
SILENT = timedelta(seconds=150)
"""So long after its latest report a session that was passed on is over; callers report every minute."""
UNHEARD = timedelta(minutes=15)
"""Age of a session without reports where it is not known whether they could be taken: the server, or its database, may
have been away."""


async def close_abandoned() -> int:
    """Close the rows that dead processes of this host left open; returns how many.

    For the start of a server process. Those of other hosts may well be talking: `close_overdue` sees to them.
    """
    try:
        return await run_in_db_thread(_close_rows_of_the_dead)
    except (
        DatabaseFailure,
        DatabaseUnavailable,
    ) as error:
        # Such as a database before its first migration; readiness says so.
        logger.warning("conversations left open could not be closed: %s", error)
        return 0


def close_overdue(now: datetime) -> int:
    """Close the rows of conversations that must be over, of any process; returns how many.

    Relayed ones that were never reported get the longest duration that this server allows as their end: the true one is
    known to the service only.
    """
    lifetime = timedelta(seconds=max(settings.SESSION_LIFETIME_S, settings.GUEST_SESSION_S))
    HeldSeat.objects.filter(taken_at__lt=now - lifetime - LATE).delete()
    open_rows = RealtimeSession.objects.filter(ended_at__isnull=True)
    relayed = open_rows.filter(transport=TransportKind.RELAYED, started_at__lt=now - lifetime)
    others = open_rows.exclude(transport=TransportKind.RELAYED).filter(started_at__lt=now - lifetime - LATE)
    silent = close_silent(open_rows, now - UNHEARD)
    return (
        silent
        + close_rows(
            relayed,
            ended_at=F("started_at") + lifetime,
            close_reason="Held by another service; when it ended is not known.",
        )
        + close_rows(
            others,
            ended_at=now,
            close_code=ABANDONED,
            close_reason="The server process that held it wrote no end.",
        )
    )


def close_silent(rows: QuerySet[RealtimeSession], since: datetime) -> int:
    """Close those of these rows whose callers have reported nothing `since` then; returns how many."""
    return close_rows(
        rows.filter(transport=TransportKind.RELAYED, ended_at__isnull=True, reported_at__lt=since),
        ended_at=F("reported_at"),
        close_code=ABANDONED,
        close_reason="Its caller reported nothing more.",
    )


def _close_rows_of_the_dead() -> int:
    open_rows = RealtimeSession.objects.filter(ended_at__isnull=True).exclude(transport=TransportKind.RELAYED)
    held_by = set(HeldSeat.objects.values_list("held_by", flat=True).distinct())
    HeldSeat.objects.filter(held_by__in=filter(is_gone, held_by)).delete()
    names = open_rows.values_list("served_by", flat=True).distinct()
    gone = [name for name in names if not name or is_gone(name)]  # none: written before processes had names
    return close_rows(
        open_rows.filter(served_by__in=gone),
        ended_at=timezone.now(),
        close_code=ABANDONED,
        close_reason="The server process ended without a goodbye.",
    )


def close_rows(rows: QuerySet[RealtimeSession], **end: object) -> int:
    """Write an end and tell of it; one transaction each, because other processes may be doing the same, and a report
    may come in between."""
    closed = 0
    for session_id, workspace_id in list(rows.values_list("pk", "workspace_id")):
        with transaction.atomic():
            is_ours = rows.filter(pk=session_id, ended_at__isnull=True).update(**end)
            if is_ours:
                webhook_events.tell(workspace_id, [session_id], webhook_events.ENDED)
        closed += is_ours
    return closed
