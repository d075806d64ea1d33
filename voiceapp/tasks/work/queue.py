"""Working on tasks: whose turn it is, running the parts, writing down what they came to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from time import monotonic

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models.functions import Coalesce, Now

from voiceapp import tracing
from voiceapp.accounts.auth import Caller
from voiceapp.database.thread import DatabaseUnavailable
from voiceapp.disk import DiskFull, disks, is_full
from voiceapp.errors import VoiceError
from voiceapp.leases.rows import Claims, Lease
from voiceapp.tasks.kinds import PartResult, TaskKind, kinds
from voiceapp.tasks.models import Subtask, Task
from voiceapp.tasks.signals import QUEUE_NAME, task_finished
from voiceapp.tasks.states import Status
from voiceapp.tasks.storage.scratch import Scratch
from voiceapp.tasks.work.context import Database, TaskContext
from voiceapp.tasks.work.jobs import (
    FAULT,
    KEY_GONE,
    KIND_GONE,
    NO_ROOM,
    OVERDUE,
    WORKER_LOST,
    Job,
    PartEnd,
    as_finished,
    item_of,
    job_of,
    summed,
)
from voiceapp.tasks.work.running import RunningTasks
from voiceapp.tasks.work.turns import Turns

logger = logging.getLogger(__name__)

AWAY = (DatabaseUnavailable, OperationalError, InterfaceError)
KEPT_FREE = 1
"""Places, beside those of TASK_CAPACITY, for accounts with nothing under way."""
MOST_WAITING = 32
"""So many tasks that only wait make room for others; more of them hold their places."""
LOST_S = 1.0
"""Interval of looks for tasks whose worker was lost."""
PROGRESS_S = 2.0
"""Interval at which progress is written, for those who watch."""


class TaskQueue:
    """The line of tasks. Accounts with nothing under way come first, then those with the least, and equals take turns;
    within an account, priority and then age decide.

    One place is kept for an account with nothing under way, so that however long the tasks of others take, it need not
    wait for their end; and one more for each task that only waits for another service.
    """

    name = QUEUE_NAME

    def __init__(self, *, claims: Claims[Task] | None = None) -> None:
        self._places: int = settings.TASK_CAPACITY
        self._claims = claims or Claims(Task, lease_s=settings.TASK_LEASE_S)
        self.renew_every_s = min(PROGRESS_S, self._claims.lease_s / 3)
        self._turns = Turns()
        self._look_for_lost_at = 0.0
        self._running = RunningTasks()
        self._scratch = Scratch()
        self._was_short = False

    @property
    def capacity(self) -> int:
        return self._places + self._kept_free

    @property
    def _kept_free(self) -> int:
        """Return the places that are kept for accounts without running tasks."""
        return KEPT_FREE + min(self._running.count_waiting, MOST_WAITING)

    def claim(self, worker: str, limit: int) -> Sequence[Lease]:
        """First what lost its worker; then of each account as many as are its share, until there is no more or no room.

        The last of `limit` places are for accounts with nothing under way. While disk space is short, nothing is taken.
        """
        if self._is_short_of_room():
            return []
        kept_free = self._kept_free
        started = {"scheduled_at": Coalesce("scheduled_at", Now())}
        taken: list[Lease] = []
        if monotonic() >= self._look_for_lost_at and limit > kept_free:
            self._look_for_lost_at = monotonic() + LOST_S
            lost = Task.objects.filter(status=Status.RUNNING)
            taken += self._claims.claim(worker, limit=limit - kept_free, rows=lost, **started)
        while len(taken) < limit:
            more: list[Lease] = []
            for account, share in self._turns.shares(limit - len(taken), kept_free).items():
                waiting = Task.objects.filter(status=Status.PENDING, account_id=account)
                rows = waiting.order_by("-priority", "due_at")
                more += self._claims.claim(worker, limit=share, rows=rows, **started)
            if not more:
                break
            taken += more  # fewer than asked for, where an account had less to do than its share: the others go on
        return taken

    def _is_short_of_room(self) -> bool:
        shortage = disks().shortage()
        if bool(shortage) != self._was_short:
            self._was_short = bool(shortage)
            logger.warning(
                "%s", f"{shortage} Tasks wait meanwhile." if shortage else "Tasks go on: there is room again."
            )
        return self._was_short

    def count_due(self, limit: int) -> int:
        return int(self._claims.due()[:limit].count())

    def renew(self, lease: Lease) -> bool:
        progress = self._running.progress(lease)
        return self._claims.renew(lease, **({} if progress is None else {"progress": progress}))

    def release(self, lease: Lease) -> bool:
        return self._claims.release(lease)

    async def close(self) -> None:
        self._scratch.close()

    async def work(self, lease: Lease, database: Database) -> None:
        """Run every part that is not over yet, then finish the task."""
        job: Job = await database(job_of, lease)
        tracing.request_id.set(job.task.request_id)
        logger.info("task %s: began, %s", job.task.task_id, job.task.facts(attempt=lease.attempts))
        kind = kinds().get(job.task.kind)
        unwritten: Sequence[PartEnd] | None = None
        if kind is None:
            unwritten = job.give_up(KIND_GONE)
        elif lease.attempts > kind.max_attempts:
            unwritten = job.give_up(WORKER_LOST)
        elif job.caller is None:
            unwritten = job.give_up(KEY_GONE)
        else:
            try:
                unwritten = await self._run_parts(kind, job, job.caller, database)
            except* (*AWAY, DiskFull) as away:
                # No fault of the task.
                logger.warning("task %s: begins again when its lease is over: %s", job.task.task_id, away.exceptions[0])
        if unwritten is None:
            return
        if not await database(self._finish, kind, job, unwritten):
            logger.info("task %s: lease lost, result dropped", job.task.task_id)

    async def _run_parts(self, kind: TaskKind, job: Job, caller: Caller, database: Database) -> Sequence[PartEnd]:
        """Run what is still to be done; of several parts each is written down at once, a single one with the task."""
        room = asyncio.Semaphore(kind.parallel)
        unwritten: list[PartEnd] = []

        async def one(number: int, row: Subtask) -> None:
            async with room:
                end = await self._run_part(kind, job, number, row, caller, database)
                if len(job.parts) == 1:
                    unwritten.append(end)
                else:
                    await database(self._part_over, job.lease, end)

        ended = job.total - len(job.parts)
        with self._running.entry(job.lease, parts=job.total, ended=ended):
            async with asyncio.TaskGroup() as group:
                for number, row in enumerate(job.parts, start=ended):
                    group.create_task(one(number, row), name=f"task {job.task.task_id} part {row.index}")
        return unwritten

    async def _run_part(
        self, kind: TaskKind, job: Job, number: int, row: Subtask, caller: Caller, database: Database
    ) -> PartEnd:
        task = job.task
        with self._scratch.folder() as folder:
            part = TaskContext(
                task=task,
                row=row,
                number=number,
                caller=caller,
                folder=folder,
                result_bytes_left=job.result_bytes_left,
                lease=job.lease,
                claims=self._claims,
                running=self._running,
                database=database,
            )
            try:
                async with asyncio.timeout(kind.time_limit_s):
                    done = await kind.run(part)
            except AWAY:
                raise
            except DiskFull:
                return self._no_room(kind, job, row)
            except VoiceError as error:
                return PartEnd(row, PartResult(), error.code, error.message)
            except TimeoutError:
                return PartEnd(row, PartResult(), *OVERDUE)
            except Exception as error:
                if is_full(error):
                    return self._no_room(kind, job, row)
                logger.exception("task %s: part %d failed with an unexpected error", task.task_id, row.index)
                return PartEnd(row, PartResult(), *FAULT)
        part.progress(1.0)
        return PartEnd(row, done)

    def _no_room(self, kind: TaskKind, job: Job, row: Subtask) -> PartEnd:
        """The end of a part for which there is no room, if it was tried often enough: it may be what fills the disk.

        Raises:
            DiskFull: if it is to be tried again.
        """
        if job.lease.attempts < kind.max_attempts:
            raise DiskFull
        return PartEnd(row, PartResult(), *NO_ROOM)

    def _part_over(self, lease: Lease, end: PartEnd) -> None:
        """Write down what a part came to, while the task is still ours. Workers that die later count anew."""
        with transaction.atomic():
            if self._claims.renew(lease, attempts=1):
                end.tell_row()
                end.write()

    def _finish(self, kind: TaskKind | None, job: Job, unwritten: Sequence[PartEnd]) -> bool:
        """One transaction: the task's end, its result, and the signal that it ended."""
        with transaction.atomic():
            for end in unwritten:
                end.tell_row()
            parts = [end.row for end in unwritten]
            if len(parts) < job.total:
                fresh = {part.pk: part for part in parts}
                parts = [fresh.get(part.pk, part) for part in Subtask.objects.filter(task=job.task)]
            good = [part for part in parts if part.status == Status.SUCCEEDED]
            changes: dict[str, object] = {"ended_at": Now(), "progress": 1.0, "usage": summed(good)}
            last = "succeed" if good else "fail"
            if not good:
                changes |= {"code": parts[0].code, "message": parts[0].message}
            if kind is not None and (good or kind.has_results):
                try:
                    changes["output"] = kind.output(job.task.order, [item_of(part) for part in parts])
                except Exception:  # a task that never ended would be begun for ever
                    logger.exception("task %s: its output could not be put together", job.task.task_id)
                    last = "fail"
                    changes |= {"code": FAULT[0], "message": FAULT[1]}
            if not self._claims.finish(job.lease, last, **changes):
                return False
            for end in unwritten:
                end.write()
            task_finished.send(Task, task=as_finished(job.task, last, changes))
            return True
