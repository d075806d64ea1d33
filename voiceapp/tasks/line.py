"""Working on tasks: whose turn it is, running the parts, writing down what they came to."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import randrange
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models.functions import Coalesce, Now

from voiceapp.accounts.auth import Caller, caller_of_key
from voiceapp.accounts.bookkeeper import BooksClosed
from voiceapp.errors import InvalidApiKey, VoiceError
from voiceapp.leases.rows import Claims, Lease
from voiceapp.tasks import files
from voiceapp.tasks.kinds import Done, Kind, Part, kinds
from voiceapp.tasks.models import Status, Subtask, Task
from voiceapp.tasks.scratch import Scratch
from voiceapp.tasks.signals import task_finished
from voiceapp.tasks.store import LINE

logger = logging.getLogger(__name__)

Database = Callable[..., Awaitable[Any]]

WORKER_LOST = ("InternalError.WorkerLost", "The task was begun several times and never came to an end.")
FAULT = ("InternalError", "The server failed on this task; its log says why under the task's id.")
OVERDUE = ("ResponseTimeout", "The task took longer than tasks of its kind may.")
KEY_GONE = ("InvalidApiKey", "The API key of this task was revoked before the task began.")
KIND_GONE = ("InternalError", "This server does no tasks of this kind any more.")
KEPT_FREE = 1
"""Places, beside those of TASK_CAPACITY, for accounts with nothing under way."""
MOST_ASIDE = 32
"""So many tasks that only wait make room for others; more of them hold their places."""
LOST_S = 1.0
"""How often it is looked for what lost its worker."""
UNFIT_FOR_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed task, with what is needed to work on it."""

    lease: Lease
    task: Task
    parts: Sequence[Subtask]
    """Those still to be done."""
    total: int
    caller: Caller | None
    """In whose name; None when their key is good no more."""

    def give_up(self, verdict: tuple[str, str]) -> Sequence[End]:
        """Nothing more will be done; what parts came to that are over stays."""
        code, message = verdict
        return [End(part, code=code, message=message) for part in self.parts]


@dataclass(frozen=True, slots=True)
class End:
    """What a part came to."""

    row: Subtask
    done: Done = field(default_factory=Done)
    code: str = ""
    """Why it failed; empty when it succeeded."""
    message: str = ""

    def tell_row(self) -> None:
        """Put it into the row as it is in memory."""
        self.row.status = Status.FAILED if self.code else Status.SUCCEEDED
        self.row.result, self.row.usage = dict(self.done.result), dict(self.done.usage)
        self.row.code, self.row.message = self.code[:60], self.message[:500]

    def write(self) -> None:
        """Put it into the table, while the transaction at hand holds the task."""
        self.tell_row()
        self.row.save(update_fields=("status", "result", "usage", "code", "message"))


PROGRESS_S = 2.0
"""How often progress is written down, for those who watch."""


class TaskLine:
    """The line of tasks. Accounts with nothing under way come first, then those with the least, and equals take turns;
    within an account, priority and then age decide.

    One place is kept for an account with nothing under way, so that however long the tasks of others take, it need not
    wait for their end; and one more for each task that only waits for something elsewhere.
    """

    name = LINE

    def __init__(self, *, claims: Claims[Task] | None = None) -> None:
        self._places: int = settings.TASK_CAPACITY
        self._claims = claims or Claims(Task, lease_s=settings.TASK_LEASE_S)
        self.renew_every_s = min(PROGRESS_S, self._claims.lease_s / 3)
        self._last_account: int | None = None
        """The last one that had a turn."""
        self._look_for_lost_at = 0.0
        self._progress: dict[Lease, list[float]] = {}
        """Of running tasks: how far each of their parts is. Read by the renewing thread."""
        self._aside: Counter[Lease] = Counter()
        """Of running tasks: how many of their parts only wait."""
        self._guard = threading.Lock()
        self._scratch = Scratch()

    @property
    def capacity(self) -> int:
        return self._places + self._kept_free

    @property
    def _kept_free(self) -> int:
        """How many places are for accounts with nothing under way."""
        return KEPT_FREE + min(len(self._aside), MOST_ASIDE)

    def claim(self, worker: str, limit: int) -> Sequence[Lease]:
        """First what lost its worker; then of each account as many as are its share, until there is no more or no room.

        The last of `limit` places are for accounts with nothing under way.
        """
        kept_free = self._kept_free
        started = {"scheduled_at": Coalesce("scheduled_at", Now())}
        taken: list[Lease] = []
        if monotonic() >= self._look_for_lost_at and limit > kept_free:
            self._look_for_lost_at = monotonic() + LOST_S
            lost = Task.objects.filter(status=Status.RUNNING)
            taken += self._claims.claim(worker, limit=limit - kept_free, rows=lost, **started)
        while len(taken) < limit:
            more: list[Lease] = []
            for account, share in self._shares(limit - len(taken), kept_free).items():
                waiting = Task.objects.filter(status=Status.PENDING, account_id=account)
                rows = waiting.order_by("-priority", "due_at")
                more += self._claims.claim(worker, limit=share, rows=rows, **started)
            if not more:
                break
            taken += more  # fewer than asked for, where an account had less to do than its share: the others go on
        return taken

    def count_due(self, limit: int) -> int:
        return int(self._claims.due()[:limit].count())

    def renew(self, lease: Lease) -> bool:
        with self._guard:
            parts = self._progress.get(lease)
            progress = {"progress": sum(parts) / len(parts)} if parts else {}
        return self._claims.renew(lease, **progress)

    def release(self, lease: Lease) -> bool:
        return self._claims.release(lease)

    async def close(self) -> None:
        self._scratch.close()

    async def work(self, lease: Lease, database: Database) -> None:
        """Run every part that is not over yet, then finish the task."""
        job: Job = await database(_job, lease)
        kind = kinds().get(job.task.kind)
        if kind is None:
            unwritten = job.give_up(KIND_GONE)
        elif lease.attempts > kind.max_attempts:
            unwritten = job.give_up(WORKER_LOST)
        elif job.caller is None:
            unwritten = job.give_up(KEY_GONE)
        else:
            unwritten = await self._run_parts(kind, job, job.caller, database)
        if not await database(self._finish, kind, job, unwritten):
            logger.info("task %s was somebody else's by the time it was done", job.task.task_id)

    async def _run_parts(self, kind: Kind, job: Job, caller: Caller, database: Database) -> Sequence[End]:
        """Run what is still to be done; of several parts each is written down at once, a single one with the task."""
        room = asyncio.Semaphore(kind.parallel)
        unwritten: list[End] = []

        async def one(number: int, row: Subtask) -> None:
            async with room:
                end = await self._run_part(kind, job, number, row, caller, database)
                if len(job.parts) == 1:
                    unwritten.append(end)
                else:
                    await database(self._part_over, job.lease, end)

        with self._guard:
            self._progress[job.lease] = [1.0] * (job.total - len(job.parts)) + [0.0] * len(job.parts)
        try:
            async with asyncio.TaskGroup() as group:
                for number, row in enumerate(job.parts, start=job.total - len(job.parts)):
                    group.create_task(one(number, row))
        finally:
            with self._guard:
                del self._progress[job.lease]
        return unwritten

    async def _run_part(
        self, kind: Kind, job: Job, number: int, row: Subtask, caller: Caller, database: Database
    ) -> End:
        task = job.task

        def progress(share: float) -> None:
            with self._guard:
                if parts := self._progress.get(job.lease):
                    parts[number] = min(max(share, 0.0), 1.0)

        @contextmanager
        def aside() -> Iterator[None]:
            self._aside[job.lease] += 1
            try:
                yield
            finally:
                self._aside[job.lease] -= 1
                self._aside += Counter()  # without those that came to nothing

        with self._scratch.folder() as folder:

            async def keep(path: Path, content_type: str) -> dict[str, str]:
                wanted = f"{row.index}-{UNFIT_FOR_A_NAME.sub('-', path.name)[-80:]}"
                name = await database(files.note, task, path, wanted, content_type)
                await asyncio.to_thread(files.put, path, name)
                return {"file": name}

            async def open_file(name: str) -> Path:
                stored = await database(files.require, task, name)
                return await asyncio.to_thread(files.get, stored, folder)

            async def remember(what: Mapping[str, Any]) -> None:
                await database(self._remember, job.lease, row.pk, dict(what))

            part = Part(
                task_id=task.task_id,
                index=row.index,
                order=row.order,
                common=task.order,
                model=task.model_name,
                caller=caller,
                charge_id=f"{task.task_id}-{row.index}",
                folder=folder,
                progress=progress,
                keep=keep,
                open=open_file,
                remembered=row.result,
                remember=remember,
                aside=aside,
            )
            try:
                async with asyncio.timeout(kind.time_limit_s):
                    done = await kind.run(part)
            except (BooksClosed, OperationalError, InterfaceError):
                raise  # no fault of the task: it begins again when its lease is over and the database answers
            except VoiceError as error:
                return End(row, Done(), error.code, error.message)
            except TimeoutError:
                return End(row, Done(), *OVERDUE)
            except Exception:
                logger.exception("task %s, part %d failed in a way nobody foresaw", task.task_id, row.index)
                return End(row, Done(), *FAULT)
        progress(1.0)
        return End(row, done)

    def _remember(self, lease: Lease, part: int, what: dict[str, Any]) -> None:
        """A part that is not over has no result yet: in its place stands what must not be forgotten."""
        with transaction.atomic():
            if self._claims.held(lease).select_for_update().exists():
                Subtask.objects.filter(pk=part).update(result=what)

    def _part_over(self, lease: Lease, end: End) -> None:
        """Write down what a part came to, while the task is still ours. Workers that die later count anew."""
        with transaction.atomic():
            if self._claims.renew(lease, attempts=1):
                end.write()

    def _finish(self, kind: Kind | None, job: Job, unwritten: Sequence[End]) -> bool:
        """One transaction: the task's end, what it came to, and the word to whoever listens."""
        with transaction.atomic():
            for end in unwritten:
                end.tell_row()
            parts = [end.row for end in unwritten]
            if len(parts) < job.total:
                fresh = {part.pk: part for part in parts}
                parts = [fresh.get(part.pk, part) for part in Subtask.objects.filter(task=job.task)]
            good = [part for part in parts if part.status == Status.SUCCEEDED]
            changes: dict[str, object] = {"ended_at": Now(), "progress": 1.0, "usage": _summed(good)}
            status = Status.SUCCEEDED if good else Status.FAILED
            if not good:
                changes |= {"code": parts[0].code, "message": parts[0].message}
            if kind is not None and (good or kind.has_results):
                try:
                    changes["output"] = kind.output(job.task.order, [_item(part) for part in parts])
                except Exception:  # a task that never ended would be begun for ever
                    logger.exception("what task %s came to could not be put together", job.task.task_id)
                    status = Status.FAILED
                    changes |= {"code": FAULT[0], "message": FAULT[1]}
            if not self._claims.finish(job.lease, status, **changes):
                return False
            for end in unwritten:
                end.write()
            task_finished.send(Task, task=_as_finished(job.task, status, changes))
            return True

    def _shares(self, room: int, kept_free: int) -> Counter[int]:
        """How many tasks of which account are next."""
        live = Task.objects.filter(status=Status.RUNNING, due_at__gt=Now())
        under_way = Counter(live.values_list("account_id", flat=True))
        turns = self._turns(room, under_way)
        shares: Counter[int] = Counter()
        while turns and shares.total() < room:
            account = min(turns, key=lambda account: under_way[account])  # of equals, whose turn it is
            if under_way[account] and shares.total() >= room - kept_free:
                break
            under_way[account] += 1
            shares[account] += 1
            turns.remove(account)
            turns.append(account)
            self._last_account = account
        return shares

    def _turns(self, room: int, under_way: Mapping[int, int]) -> list[int]:
        """Accounts that have a task waiting and due, by number from the last turn on and around.

        No more of them than it takes to find `room` accounts with nothing under way: there may be many.
        """
        waiting = Task.objects.filter(status=Status.PENDING, due_at__lte=Now()).order_by("account_id")
        numbers = waiting.values_list("account_id", flat=True)
        if self._last_account is None:  # anywhere, lest those with low numbers come first whenever a process is new
            self._last_account = randrange((numbers.last() or 0) + 1)  # noqa: S311 (fairness, no secret)
        start = after = self._last_account
        found: list[int] = []
        is_around = False
        while sum(1 for account in found if not under_way.get(account)) < room:
            account = numbers.filter(account_id__gt=after).first()
            if account is None and not is_around:
                is_around, after = True, -1
                continue
            if account is None or (is_around and account > start):
                break
            found.append(account)
            after = account
        return found


def _job(lease: Lease) -> Job:
    task = Task.objects.get(pk=lease.row_id)
    parts = list(task.subtasks.all())
    try:
        caller = caller_of_key(task.key_id)
    except InvalidApiKey:
        caller = None
    return Job(lease, task, [part for part in parts if part.status == Status.PENDING], len(parts), caller)


def _as_finished(task: Task, status: str, changes: Mapping[str, Any]) -> Task:
    """The row as it was just written; when it ended is read from the table if somebody asks."""
    for name, value in {**changes, "status": status}.items():
        setattr(task, name, value)
    del task.__dict__["ended_at"]
    return task


def _item(part: Subtask) -> dict[str, Any]:
    if part.status == Status.SUCCEEDED:
        return dict(part.result)
    return {"code": part.code, "message": part.message}


def _summed(parts: Sequence[Subtask]) -> dict[str, int | float | str]:
    total: dict[str, Any] = {}
    for part in parts:
        for unit, quantity in part.usage.items():
            before = total.get(unit, 0)
            total[unit] = quantity if str in (type(before), type(quantity)) else round(before + quantity, 3)
    return total
