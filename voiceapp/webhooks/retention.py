"""Deletes events past their time, with their deliveries, and endpoints that were deleted."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef

from voiceapp.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent

BATCH = 500


def purge_events(now: datetime) -> int:
    """Delete events older than `WEBHOOK_RETENTION_DAYS`, whatever became of them; returns how many.

    An event that is still being tried goes with the others: a receiver that was away for that long asks what is.
    """
    before = now - timedelta(days=settings.WEBHOOK_RETENTION_DAYS)
    deleted = 0
    old = WebhookEvent.objects.filter(created_at__lt=before).order_by("created_at")
    while batch := list(old.values_list("pk", flat=True)[:BATCH]):
        WebhookEvent.objects.filter(pk__in=batch).delete()
        deleted += len(batch)
    unread = ~Exists(Delivery.objects.filter(endpoint=OuterRef("pk")))
    WebhookEndpoint.objects.filter(unread, deleted_at__lt=before).delete()
    return deleted
