"""Retention of the words of a conversation. The numbers stay: who talked, how long, how fast."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.realtime.records import webhook_events
from voiceapp.realtime.records.recording import purge_recordings
from voiceapp.webhooks.events import EventKind

BATCH = 500
"""Rows per statement, so that a large purge never holds the database for long."""


def purge_transcripts(now: datetime) -> int:
    """Blank the words of turns older than TRANSCRIPT_DAYS and return how many turns lost theirs."""
    kept_since = now - timedelta(days=settings.TRANSCRIPT_DAYS)
    with_words = Turn.objects.filter(started_at__lt=kept_since).exclude(
        Q(user_text="") & Q(assistant_text="") & Q(heard_text="")
    )
    purged = 0
    while batch := list(with_words.order_by("started_at").values_list("pk", "session_id")[:BATCH]):
        sessions = {session_id for _, session_id in batch}
        with transaction.atomic():
            purged += Turn.objects.filter(pk__in=[pk for pk, _ in batch]).update(
                user_text="", assistant_text="", heard_text=""
            )
            with_words_left = set(with_words.filter(session_id__in=sessions).values_list("session_id", flat=True))
            _tell(sessions - with_words_left, EventKind.SESSION_ARCHIVED)
    return purged


def delete_conversations(rows: QuerySet[RealtimeSession]) -> int:
    """Delete those of the conversations that are over, with their recordings; returns how many."""
    over, deleted = rows.filter(ended_at__isnull=False), 0
    while batch := set(over.values_list("pk", flat=True)[:BATCH]):
        with transaction.atomic():
            _tell(batch, EventKind.SESSION_DELETED)
            RealtimeSession.objects.filter(pk__in=batch).delete()
        deleted += len(batch)
    # What a bucket does not delete now is deleted within an hour.
    transaction.on_commit(lambda: purge_recordings(timezone.now()), robust=True)
    return deleted


def _tell(session_ids: set[str], kind: EventKind) -> None:
    by_workspace: defaultdict[int, list[str]] = defaultdict(list)
    for workspace_id, session_id in RealtimeSession.objects.filter(pk__in=session_ids).values_list(
        "workspace_id", "pk"
    ):
        by_workspace[workspace_id].append(session_id)
    for workspace_id, ids in by_workspace.items():
        webhook_events.tell(workspace_id, sorted(ids), [kind])
