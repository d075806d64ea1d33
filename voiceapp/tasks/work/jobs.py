"""A task while it is worked on, what its parts come to, and what the whole does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voiceapp.accounts.auth import Caller, caller_of_row
from voiceapp.errors import InvalidApiKey
from voiceapp.leases.rows import Lease
from voiceapp.protocol.states import step
from voiceapp.tasks.kinds import PartResult
from voiceapp.tasks.models import Subtask, Task
from voiceapp.tasks.states import PART_STEPS, TASK_STEPS, Status
from voiceapp.tasks.storage import storage_use

WORKER_LOST = ("InternalError.WorkerLost", "The task was begun several times and never came to an end.")
FAULT = ("InternalError", "The server failed on this task; its log says why under the task's id.")
OVERDUE = ("ResponseTimeout", "The task took longer than tasks of its kind may.")
KEY_GONE = ("InvalidApiKey", "The API key of this task was revoked before the task began.")
KIND_GONE = ("InternalError", "This server does no tasks of this kind any more.")
NO_ROOM = ("ServiceUnavailable", "The server had too little disk space for this task each time it was tried.")


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed task, with what is needed to work on it."""

    lease: Lease
    task: Task
    parts: Sequence[Subtask]
    """Parts still to be done."""
    total: int
    caller: Caller | None
    """The caller; None when the key is not valid any more."""
    result_bytes_left: int
    """Bytes that the account could still keep when this was read; a part's files are counted as they are written."""

    def give_up(self, verdict: tuple[str, str]) -> Sequence[PartEnd]:
        """Nothing more will be done; what parts came to that are over stays."""
        code, message = verdict
        return [PartEnd(part, code=code, message=message) for part in self.parts]


@dataclass(frozen=True, slots=True)
class PartEnd:
    row: Subtask
    done: PartResult = field(default_factory=PartResult)
    code: str = ""
    """Code of the failure; empty when it succeeded."""
    message: str = ""

    def tell_row(self) -> None:
        """Put it into the row as it is in memory."""
        self.row.status = step(PART_STEPS, Status(self.row.status), "fail" if self.code else "succeed")
        self.row.result, self.row.usage = dict(self.done.result), dict(self.done.usage)
        self.row.code, self.row.message = self.code[:60], self.message[:500]

    def write(self) -> None:
        """Put the row into the table, while the transaction at hand holds the task."""
        self.row.save(update_fields=("status", "result", "usage", "code", "message"))


def job_of(lease: Lease) -> Job:
    task = Task.objects.select_related("key__workspace__account").get(pk=lease.row_id)
    parts = list(task.subtasks.all())
    try:
        caller = caller_of_row(task.key)
    except InvalidApiKey:
        caller = None
    left = [part for part in parts if part.status == Status.PENDING]
    return Job(lease, task, left, len(parts), caller, storage_use.left_for_results(task.account_id))


def as_finished(task: Task, name: str, changes: Mapping[str, Any]) -> Task:
    """The row after its last step, as it was just written; when it ended is read from the table where it is needed."""
    task.status = step(TASK_STEPS, Status(task.status), name)
    for column, value in changes.items():
        setattr(task, column, value)
    del task.__dict__["ended_at"]
    return task


def item_of(part: Subtask) -> dict[str, Any]:
    if part.status == Status.SUCCEEDED:
        return dict(part.result)
    return {"code": part.code, "message": part.message}


def summed(parts: Sequence[Subtask]) -> dict[str, int | float | str]:
    total: dict[str, Any] = {}
    for part in parts:
        for unit, quantity in part.usage.items():
            before = total.get(unit, 0)
            total[unit] = quantity if str in (type(before), type(quantity)) else round(before + quantity, 3)
    return total
