"""Forgetting tasks that are over, with their files, and uploads whose time is over."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from voiceapp.tasks import files
from voiceapp.tasks.models import FINAL, Task
from voiceapp.tasks.uploads import purge_uploads

BATCH = 500


def purge_tasks(now: datetime) -> int:
    """Delete what ended longer ago than `TASK_RETENTION_HOURS`; how many those were. What is not over stays."""
    before = now - timedelta(hours=settings.TASK_RETENTION_HOURS)
    deleted = 0
    while batch := list(
        Task.objects.filter(status__in=FINAL, ended_at__lt=before).values_list("pk", flat=True)[:BATCH]
    ):
        files.delete_all(batch)  # first: a row without its file is found again, a file without its row is not
        Task.objects.filter(pk__in=batch).delete()
        deleted += len(batch)
    purge_uploads(now)
    return deleted
