"""A task as the wire shows it: whole, as a row of a list, and as it changes.

Times of a single task are UTC, `YYYY-MM-DD hh:mm:ss.SSS`; those of a list are milliseconds since the epoch. What has no
value yet is absent (interface specification, Async task).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from voiceapp.http.schemas import Schema
from voiceapp.tasks.kinds import kinds
from voiceapp.tasks.models import Subtask, Task
from voiceapp.tasks.states import Shown, Status
from voiceapp.tasks.storage.files import with_links

REGION = "local"


class Output(Schema, extra="allow"):
    """State and result of a task; its kind adds fields of its own."""

    task_id: str
    task_status: Shown
    submit_time: str | None = None
    """UTC, `YYYY-MM-DD hh:mm:ss.SSS`."""
    scheduled_time: str | None = None
    """Time at which a worker began, in the same form."""
    end_time: str | None = None
    """Time of the end, in the same form."""
    code: str | None = None
    """Code of the failure."""
    message: str | None = None
    """The same for people."""
    results: list[dict[str, Any]] | None = None
    """One item for each subtask, in the order they were asked for: what it gave, or `code` and `message`."""
    task_metrics: dict[str, int] | None = None
    """Numbers of subtasks: `TOTAL`, `SUCCEEDED`, `FAILED`."""
    progress: float | None = None
    """0 to 1, while it runs."""


class TaskReply(Schema):
    """One task."""

    request_id: str
    output: Output
    usage: dict[str, int | float | str] | None = None
    """By unit, of a task that succeeded; of a film also its `size` and `ratio`, as text."""


class TaskRow(Schema):
    """One task of a list."""

    task_id: str
    status: Shown
    model_name: str
    user_api_unique_key: str
    """`apikey:v1:<group>:<task>:<function>:<model>`."""
    request_id: str
    """Identifier of the request that created it."""
    region: str
    gmt_create: int
    """Milliseconds since the epoch."""
    start_time: int | None = None
    """Milliseconds since the epoch; absent before it began."""
    end_time: int | None = None
    """Milliseconds since the epoch; absent before it ended."""
    api_key_id: str | None = None
    """Identifier of the key that created it."""
    caller_parent_id: str
    caller_uid: str


class TaskList(Schema):
    """Some tasks of the account, newest first."""

    request_id: str
    data: list[TaskRow]
    page_no: int
    page_size: int
    total_page: int
    total: int
    tasks: list[TaskRow] | None = None
    """The rows once more, for version 2 of the `dashscope` library, which looks for them here."""


class Accepted(Schema):
    """A task was accepted."""

    output: Output
    request_id: str


class Canceled(Schema):
    """A task was canceled before it began."""

    request_id: str


def unknown(task_id: str) -> Output:
    return Output(task_id=task_id, task_status="UNKNOWN")


def output(task: Task, *, base: str) -> Output:
    """A task on its own; `base` is where its files can be fetched, such as `https://voice.example.org`."""
    parts = list(task.subtasks.all())
    fields: dict[str, Any] = {}
    if task.status in (Status.SUCCEEDED, Status.FAILED):
        fields |= with_links(task.output, base)
    kind = kinds().get(task.kind)
    if kind is not None and kind.has_results:
        fields["task_metrics"] = metrics(parts)
    if task.status == Status.FAILED:
        fields |= {"code": task.code, "message": task.message}
    if task.status == Status.RUNNING:
        fields["progress"] = round(task.progress, 3)
    return Output(
        task_id=task.task_id,
        task_status=shown(task),
        submit_time=clock(task.submitted_at),
        scheduled_time=clock(task.scheduled_at),
        end_time=clock(task.ended_at),
        **fields,
    )


def reply(task: Task | None, *, task_id: str, base: str, request_id: str) -> TaskReply:
    """The answer to a query; None is a task that there is not, for whatever reason."""
    if task is None:
        return TaskReply(request_id=request_id, output=unknown(task_id))
    return TaskReply(request_id=request_id, output=output(task, base=base), usage=task.usage or None)


def row(task: Task) -> TaskRow:
    return TaskRow(
        task_id=task.task_id,
        status=shown(task),
        model_name=task.model_name,
        user_api_unique_key=f"apikey:v1:{task.kind.replace('/', ':')}:{task.model_name}",
        request_id=task.request_id,
        region=REGION,
        gmt_create=milliseconds(task.submitted_at),
        start_time=milliseconds(task.scheduled_at) if task.scheduled_at else None,
        end_time=milliseconds(task.ended_at) if task.ended_at else None,
        api_key_id=str(task.key_id) if task.key_id else None,
        caller_parent_id=str(task.account_id),
        caller_uid=str(task.account_id),
    )


def shown(task: Task) -> Shown:
    """The status as both vocabularies have it; a task in a table is never UNKNOWN."""
    return cast(Shown, str(task.status))


def metrics(parts: Sequence[Subtask]) -> dict[str, int]:
    return {
        "TOTAL": len(parts),
        "SUCCEEDED": sum(part.status == Status.SUCCEEDED for part in parts),
        "FAILED": sum(part.status == Status.FAILED for part in parts),
    }


def clock(moment: datetime | None) -> str | None:
    """`2026-01-31 09:05:00.123`, UTC."""
    if moment is None:
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
