"""Forgetting tasks that are over, with their files, and uploads whose time is over."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from voiceapp.tasks.models import Task, TaskFile
from voiceapp.tasks.states import FINAL
from voiceapp.tasks.storage import files, storage_use
from voiceapp.tasks.storage.uploads import purge_uploads

BATCH = 500


def purge_tasks(now: datetime) -> int:
    """Delete what ended longer ago than `TASK_RETENTION_HOURS`; how many those were.

    What is not over stays, and so does, until the next purge, a task with a file that cannot be deleted.
    """
    before = now - timedelta(hours=settings.TASK_RETENTION_HOURS)
    deletions = files.Deletions()
    deleted = last = 0
    due = Task.objects.filter(status__in=FINAL, ended_at__lt=before).order_by("pk")
    while batch := list(due.filter(pk__gt=last).values_list("pk", flat=True)[:BATCH]):
        kept = _delete_files(batch, deletions)
        _delete_rows([task for task in batch if task not in kept])
        deleted += len(batch) - len(kept)
        last = batch[-1]
    purge_uploads(now, deletions)
    storage_use.recount()
    deletions.log()
    return deleted


def forget(tasks: list[int]) -> None:
    """Delete tasks that are over, by primary key, with their files.

    Raises:
        OSError: if a file cannot be deleted; all of them stay then.
    """
    files.delete_all(tasks)  # first: a row without its file is found again, a file without its row is not
    _delete_rows(tasks)


def _delete_files(tasks: list[int], deletions: files.Deletions) -> set[int]:
    rows = TaskFile.objects.filter(task_id__in=tasks).values_list("task_id", "name")
    return {task for task, name in rows if not deletions.delete(name)}


def _delete_rows(tasks: list[int]) -> None:
    with transaction.atomic():
        # Locked: another process may be forgetting the same ones, and their files are given back once.
        held = list(Task.objects.select_for_update().filter(pk__in=tasks).values_list("pk", flat=True))
        storage_use.give_back_of_tasks(held)
        Task.objects.filter(pk__in=held).delete()
