"""Rows of tasks: accept one, look at one or many, cancel one.

Functions here talk to the database; call them off the event loop (`voiceapp.database.thread.run_in_db_thread`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from voiceapp.accounts.auth import Caller
from voiceapp.disk import disks
from voiceapp.errors import RequestRefused, Throttled
from voiceapp.leases.states import take
from voiceapp.leases.wake import wake
from voiceapp.tasks.kinds import Payload, TaskKind
from voiceapp.tasks.models import Subtask, Task, not_forgotten, task_identifier
from voiceapp.tasks.signals import QUEUE_NAME, task_finished
from voiceapp.tasks.states import PART_STEPS, TASK_STEPS, Status
from voiceapp.tasks.storage import storage_use

ROW_ID = re.compile(r"[1-9][0-9]{0,17}")
"""Pattern of a row's number; the database would fail on longer ones."""


class NotPending(RequestRefused):
    """Only a task that waits can be canceled."""

    code = "UnsupportedOperation"

    def __init__(self) -> None:
        super().__init__("Failed to cancel the task, please confirm if the task is in PENDING status.")


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter of a list of tasks; None leaves a field open."""

    submitted_from: datetime
    submitted_to: datetime
    task_id: str | None = None
    model_name: str | None = None
    status: Status | None = None
    key_id: str | None = None


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Some of the tasks that a filter lets through, newest first."""

    rows: Sequence[Task]
    total: int


def accept(caller: Caller, kind: TaskKind, order: Payload, *, request_id: str) -> Task:
    """Write a task down and wake a worker; from here on it is not lost.

    Raises:
        Throttled: if the account has as many tasks waiting, or keeps as many bytes of results, as it may.
        DiskFull: if too little disk space is free.
    """
    disks().require_room()
    storage_use.require_room_for_results(caller.account_id)
    with transaction.atomic():
        waiting = Task.objects.filter(account_id=caller.account_id, status__in=(Status.PENDING, Status.RUNNING))
        if waiting[: settings.TASK_MAX_WAITING].count() >= settings.TASK_MAX_WAITING:
            raise Throttled(
                f"{settings.TASK_MAX_WAITING} tasks of this account are waiting; let some of them end first.",
                retry_after_s=60,
            )
        task = Task(
            task_id=task_identifier(),
            account_id=caller.account_id,
            workspace_id=caller.workspace_id,
            key_id=caller.key_id,
            kind=kind.path,
            model_name=order.model[:100],
            request_id=request_id,
            order=dict(order.common),
            priority=caller.task_priority,
            submitted_at=Now(),
            due_at=Now(),
        )
        task.save(force_insert=True)
        Subtask.objects.bulk_create(
            [Subtask(task=task, index=index, order=dict(part)) for index, part in enumerate(order.parts)],
            batch_size=500,
        )
        wake(QUEUE_NAME)
    return task


def find(account_id: int, task_id: str) -> Task | None:
    """A task of the account, its parts included; None for one that there is not, is no more, or is not theirs."""
    rows = Task.objects.filter(not_forgotten(), account_id=account_id, task_id=task_id)
    task: Task | None = rows.prefetch_related("subtasks").first()
    return task


def listed(account_id: int, wanted: Filter, *, page_no: int, page_size: int) -> TaskPage:
    """One page of the account's tasks, newest first."""
    rows = _matching(account_id, wanted)
    start = (page_no - 1) * page_size
    return TaskPage(list(rows.select_related("account", "key")[start : start + page_size]), rows.count())


def cancel(account_id: int, task_id: str, *, step: str = "cancel") -> None:
    """End a task before it begins. Exactly one of cancel and claim comes first, whichever worker asks. With the step
    `withdraw`, end one that has begun: its worker loses the lease.

    Raises:
        NotPending: if it does not have the step, or there is no such task of this account.
    """
    with transaction.atomic():
        rows = Task.objects.filter(account_id=account_id, task_id=task_id)
        if not take(rows, TASK_STEPS, step, ended_at=Now(), version=F("version") + 1):
            raise NotPending
        task = Task.objects.select_related("key").get(task_id=task_id)
        take(task.subtasks.all(), PART_STEPS, "cancel")
        task_finished.send(Task, task=task)


def _matching(account_id: int, wanted: Filter) -> QuerySet[Task]:
    rows = Task.objects.filter(not_forgotten(), account_id=account_id)
    if wanted.task_id is not None:
        rows = rows.filter(task_id=wanted.task_id)
    else:
        rows = rows.filter(submitted_at__gte=wanted.submitted_from, submitted_at__lte=wanted.submitted_to)
    if wanted.model_name is not None:
        rows = rows.filter(model_name=wanted.model_name)
    if wanted.status is not None:
        rows = rows.filter(status=wanted.status)
    if wanted.key_id is not None:
        rows = rows.filter(key_id=int(wanted.key_id)) if ROW_ID.fullmatch(wanted.key_id) else rows.none()
    return rows.order_by("-submitted_at", "-id")
