"""One part of a task while it is worked on: what it has to know, and what it may ask of the queue."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from voiceapp.accounts.auth import Caller
from voiceapp.disk import disks
from voiceapp.leases.rows import Claims, Lease
from voiceapp.tasks.models import Subtask, Task
from voiceapp.tasks.storage import files, storage_use
from voiceapp.tasks.work.running import RunningTasks

UNFIT_FOR_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")

Database = Callable[..., Awaitable[Any]]
"""`await database(function, *arguments)` runs a function in the thread that talks to the database."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """One part of a task, while it is worked on."""

    task: Task
    row: Subtask
    number: int
    """Among the parts of the task, from 0."""
    caller: Caller
    """The caller of the task, with the key's rights as they are now."""
    folder: Path
    """An empty folder for what it needs on the way; deleted afterwards."""
    result_bytes_left: int
    """Bytes of results that the account may still keep."""
    lease: Lease
    claims: Claims[Task]
    running: RunningTasks
    database: Database

    @property
    def task_id(self) -> str:
        return str(self.task.task_id)

    @property
    def model(self) -> str:
        return str(self.task.model_name)

    @property
    def order(self) -> Mapping[str, Any]:
        """Input of this part."""
        return dict(self.row.order)

    @property
    def common(self) -> Mapping[str, Any]:
        """Input that all parts of the task share."""
        return dict(self.task.order)

    @property
    def charge_id(self) -> str:
        """Names the charges of this part in the ledger: the same in each attempt, so that a repeated one bills once. A
        part with several charges adds a suffix of its own to each.
        """
        return f"{self.task.task_id}-{self.row.index}"

    @property
    def remembered(self) -> Mapping[str, Any]:
        """Facts that an earlier attempt at this part asked to remember; empty in the first."""
        return dict(self.row.result)

    def progress(self, share: float) -> None:
        """Say how far this part is, 0 to 1. Cheap, from any thread."""
        self.running.note_progress(self.lease, self.number, share)

    def waiting(self) -> AbstractContextManager[None]:
        """Enter a block that only waits for another service: meanwhile its place is another account's."""
        return self.running.waiting(self.lease)

    def require_room(self, count: int) -> None:
        """Check while a result grows that so many bytes of it can be kept. Cheap.

        Raises:
            Throttled: if the account may not keep so many.
            DiskFull: if too little disk space is free.
        """
        storage_use.require_room_for_results(self.task.account_id, count, left=self.result_bytes_left)
        disks().require_room_in_progress()

    async def keep(self, path: Path, content_type: str) -> dict[str, str]:
        """Store a file under its own name; returns what stands for it in a result, `{"file": …}`, which the wire shows
        as a signed, expiring link.
        """
        wanted = f"{self.row.index}-{UNFIT_FOR_A_NAME.sub('-', path.name)[-80:]}"
        name = await self.database(files.note, self.task, path, wanted, content_type)
        await asyncio.to_thread(files.put, path, name)
        return {"file": name}

    async def open(self, name: str) -> Path:
        """Fetch a stored file into `folder`: what `keep` stored, or an upload by `oss://…`.

        Raises:
            NotFound: if there is no such file any more.
        """
        stored = await self.database(files.require, self.task, name)
        return await asyncio.to_thread(files.get, stored, self.folder)

    async def remember(self, what: Mapping[str, Any]) -> None:
        """Keep what the next attempt must know if this worker dies: the number of a job that another service has
        begun."""
        await self.database(self._remember, dict(what))

    def _remember(self, what: dict[str, Any]) -> None:
        """A part that is not over has no result yet: in its place stands what must not be forgotten."""
        with transaction.atomic():
            if self.claims.held(self.lease).select_for_update().exists():
                Subtask.objects.filter(pk=self.row.pk).update(result=what)
