"""Forgetting tasks that are over, with their files, and uploads whose time is over."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from voiceapp.tasks import files, storage_use
from voiceapp.tasks.models import Task
from voiceapp.tasks.states import FINAL
from voiceapp.tasks.uploads import purge_uploads

BATCH = 500


def purge_tasks(now: datetime) -> int:
    """Delete what ended longer ago than `TASK_RETENTION_HOURS`; how many those were. What is not over stays."""
    before = now - timedelta(hours=settings.TASK_RETENTION_HOURS)
    deleted = 0
    while batch := list(
        Task.objects.filter(status__in=FINAL, ended_at__lt=before).values_list("pk", flat=True)[:BATCH]
    ):
        forget(batch)
        deleted += len(batch)
    purge_uploads(now)
    storage_use.recount()
    return deleted


def forget(tasks: list[int]) -> None:
    """Delete tasks that are over, by primary key, with their files."""
    files.delete_all(tasks)  # first: a row without its file is found again, a file without its row is not
    with transaction.atomic():
        # Locked: another process may be forgetting the same ones, and their files are given back once.
        held = list(Task.objects.select_for_update().filter(pk__in=tasks).values_list("pk", flat=True))
        storage_use.give_back_of_tasks(held)
        Task.objects.filter(pk__in=held).delete()
