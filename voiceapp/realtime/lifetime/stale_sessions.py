"""Rows of conversations that no process will end: their process died, or another service held them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet

from voiceapp.realtime.close_codes import ABANDONED
from voiceapp.realtime.models import HeldSeat, RealtimeSession, TransportKind
from voiceapp.realtime.records import webhook_events

LATE = timedelta(minutes=5)
"""Time after its longest duration in which a conversation may still write its end."""
SILENT = timedelta(seconds=150)
"""So long after its latest report a session that was passed on is over; callers report every minute."""
UNREPORTED = timedelta(seconds=600)
"""Time for which a session that was passed on and never reported counts as open. A guest's counts for as long as guests
may talk."""


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
    return close_rows(
        relayed,
        ended_at=F("started_at") + lifetime,
        close_reason="Held by another service; when it ended is not known.",
    ) + close_rows(
        others,
        ended_at=now,
        close_code=ABANDONED,
        close_reason="The server process that held it wrote no end.",
    )


def close_silent(now: datetime) -> int:
    """Close the sessions that were passed on and are reported no more; returns how many."""
    return close_rows(
        RealtimeSession.objects.filter(
            transport=TransportKind.RELAYED, ended_at__isnull=True, reported_at__lt=now - SILENT
        ),
        ended_at=F("reported_at"),
        close_code=ABANDONED,
        close_reason="Its caller reported nothing more.",
    )


def close_rows(rows: QuerySet[RealtimeSession], **end: object) -> int:
    """Write an end and tell of it; one transaction each, because other processes may be doing the same, and a report
    may come in between."""
    closed = 0
    for session_id, workspace_id in list(rows.values_list("pk", "workspace_id")):
        with transaction.atomic():
            is_ours = rows.filter(pk=session_id, ended_at__isnull=True).update(live_words=None, **end)
            if is_ours:
                webhook_events.tell(workspace_id, [session_id], webhook_events.ENDED)
        closed += is_ours
    return closed
