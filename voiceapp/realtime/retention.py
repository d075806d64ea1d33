"""How long the words of a conversation are kept. The numbers stay: who talked, how long, how fast."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from .models import Turn

BATCH = 500
"""Rows per statement, so that a large purge never holds the database for long."""


def purge_transcripts(now: datetime) -> int:
    """Blank the words of turns older than TRANSCRIPT_DAYS and return how many turns lost theirs."""
    kept_since = now - timedelta(days=settings.TRANSCRIPT_DAYS)
    with_words = Turn.objects.filter(started_at__lt=kept_since).exclude(
        Q(user_text="") & Q(assistant_text="") & Q(heard_text="")
    )
    purged = 0
    while batch := list(with_words.order_by("started_at").values_list("pk", flat=True)[:BATCH]):
        purged += Turn.objects.filter(pk__in=batch).update(user_text="", assistant_text="", heard_text="")
    return purged
