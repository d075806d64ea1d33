"""Bytes of an account's files: counted with each, so that of many at once exactly as many get in as fit.

Every step is one conditional UPDATE in the transaction that writes or deletes the rows of the files, which holds over
all processes of a database. Functions here touch rows; call them within that transaction.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from django.conf import settings
from django.db import models, transaction
from django.db.models import F, Sum, Value
from django.db.models.functions import Greatest

from voiceapp.errors import Throttled
from voiceapp.formats import size
from voiceapp.leases.statements import Statement, keys_given
from voiceapp.tasks.models import StorageUse, TaskFile, Upload

ALLOCATION = "Throttling.AllocationQuota"
RETRY_S = 3600

Column = Literal["result_bytes", "upload_bytes"]


def take(account_id: int, column: Column, count: int) -> None:
    """Count a file that is about to be written down.

    Raises:
        Throttled: `Throttling.AllocationQuota`, if it does not fit.
    """
    rows = StorageUse.objects.filter(account_id=account_id)
    fitting = rows.filter(**{f"{column}__lte": _quota(column) - count})
    if fitting.update(**{column: F(column) + count}):
        return
    # There may be no row yet, and another process may make it just now.
    StorageUse.objects.bulk_create([StorageUse(account_id=account_id)], ignore_conflicts=True)
    if not fitting.update(**{column: F(column) + count}):
        raise _used_up(column)


def give_back(account_id: int, column: Column, count: int) -> None:
    """A file of this size is gone."""
    left = Greatest(F(column) - count, Value(0), output_field=models.BigIntegerField())
    StorageUse.objects.filter(account_id=account_id).update(**{column: left})


def give_back_of_tasks(tasks: list[int]) -> None:
    """The files of these tasks are gone; call it before their rows are, and with the tasks' rows locked."""
    sums = TaskFile.objects.filter(task_id__in=tasks).order_by().values_list("task__account_id").annotate(Sum("size"))
    for account_id, count in sorted(sums):  # in this order, lest two processes wait for each other
        give_back(account_id, "result_bytes", count)


def left_for_results(account_id: int) -> int:
    used = _used().run([account_id])
    return max(0, _quota("result_bytes") - (used[0][0] if used else 0))


@cache
def _used() -> Statement:
    """The bytes of results of the account given. Each task asks for them twice."""
    rows = StorageUse.objects.order_by().filter(account_id__in=keys_given())
    return Statement.selecting(rows.values_list("result_bytes"))


def require_room_for_results(account_id: int, count: int = 1, *, left: int | None = None) -> None:
    """Check that an account may keep so many more bytes of results. Nothing is counted.

    Raises:
        Throttled: `Throttling.AllocationQuota`, if they do not fit.
    """
    if count > (left_for_results(account_id) if left is None else left):
        raise _used_up("result_bytes")


def recount() -> None:
    """Count anew what was written before there was a count, or went with a row that something else deleted."""
    kept = {*StorageUse.objects.values_list("account_id", flat=True)}
    kept |= {*TaskFile.objects.order_by().values_list("task__account_id", flat=True).distinct()}
    kept |= {*Upload.objects.order_by().values_list("account_id", flat=True).distinct()}
    for account_id in sorted(kept):
        with transaction.atomic():
            StorageUse.objects.bulk_create([StorageUse(account_id=account_id)], ignore_conflicts=True)
            # Locked first: what others write meanwhile is added to what is counted here.
            row = StorageUse.objects.select_for_update().get(account_id=account_id)
            results = TaskFile.objects.filter(task__account_id=account_id).aggregate(sum=Sum("size"))["sum"] or 0
            uploads = Upload.objects.filter(account_id=account_id).aggregate(sum=Sum("size"))["sum"] or 0
            if (row.result_bytes, row.upload_bytes) != (results, uploads):
                row.result_bytes, row.upload_bytes = results, uploads
                row.save(update_fields=("result_bytes", "upload_bytes"))


def _quota(column: Column) -> int:
    quota: int = settings.RESULT_QUOTA_BYTES if column == "result_bytes" else settings.UPLOAD_QUOTA_BYTES
    return quota


def _used_up(column: Column) -> Throttled:
    if column == "upload_bytes":
        what, goes = "uploads", f"each goes after {settings.UPLOAD_HOURS:g} hours"
    else:
        what, goes = "results of tasks", f"they go {settings.TASK_RETENTION_HOURS:g} hours after the end of their tasks"
    return Throttled(
        f"This account may keep {size(_quota(column))} of {what}, and this would be more; {goes}.",
        code=ALLOCATION,
        retry_after_s=RETRY_S,
    )
