"""The operations on tasks: create, look at, list, cancel."""

from __future__ import annotations

import inspect
import json
import math
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import pydantic
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Path, Query, Router
from ninja.errors import ValidationError
from pydantic import ConfigDict, Field

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.rates import rates
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import AccessDenied, InvalidParameter
from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.tasks import records, store, withdrawal
from voiceapp.tasks.kinds import TaskKind, kind_at
from voiceapp.tasks.records import Accepted, Canceled, TaskList, TaskReply
from voiceapp.tasks.states import UNKNOWN, Shown, Status

LONGEST_RANGE = timedelta(hours=24)
MAX_PAGE_SIZE = 100
YEARS = range(1970, 9999)
"""Times in others have no day before or after them that can be written down."""
ASYNC = {
    "parameters": [
        {
            "name": "X-DashScope-Async",
            "in": "header",
            "required": True,
            "description": "`enable`: the answer is a task. `x-service-async` is read as well.",
            "schema": {"type": "string", "enum": ["enable"]},
        }
    ]
}

TaskId = Annotated[CleanStr, Path(max_length=200, description="Of the task, as its creation answered it.")]

router = Router(tags=["Tasks"])


class ListQuery(Schema):
    """Filter of a list of tasks."""

    model_config = ConfigDict(strict=False)

    task_id: CleanStr | None = None
    """Only this task."""
    start_time: CleanStr | None = None
    """`YYYYMMDDhhmmss`, UTC: submitted then or later. Without it, 24 hours before `end_time`."""
    end_time: CleanStr | None = None
    """`YYYYMMDDhhmmss`, UTC: submitted then or earlier. Without it, 24 hours after `start_time`, or now."""
    model_name: CleanStr | None = None
    """Only tasks of this model."""
    status: Shown | Literal[""] = ""
    """Only tasks that stand here; empty: all."""
    api_key_id: CleanStr | None = None
    """Only tasks created with this key."""
    region: CleanStr | None = None
    """Only tasks of this region; there is one, `local`."""
    page_no: int = Field(1, ge=1, le=1_000_000)
    page_size: int = Field(10, ge=1, le=MAX_PAGE_SIZE)


@router.get("/tasks", summary="List tasks", response=TaskList, exclude_none=True)
async def list_tasks(request: HttpRequest, query: Query[ListQuery]) -> TaskList:
    """The tasks of the account, newest first, whichever of its keys created them; at most 24 hours of them."""
    caller = _caller(request)
    await rates().admit(caller.account_id, "tasks.list")
    wanted = _filter(query)
    page = store.TaskPage([], 0)
    if query.status != UNKNOWN and query.region in (None, "", records.REGION):
        page = await run_in_db_thread(
            store.listed, caller.account_id, wanted, page_no=query.page_no, page_size=query.page_size
        )
    rows = [records.row(task) for task in page.rows]
    return TaskList(
        request_id=request.request_id,
        data=rows,
        page_no=query.page_no,
        page_size=query.page_size,
        total_page=math.ceil(page.total / query.page_size),
        total=page.total,
        tasks=rows if "dashscope/2" in request.headers.get("User-Agent", "") else None,
    )


@router.get("/tasks/{task_id}", summary="Look at a task", response=TaskReply, exclude_none=True)
async def retrieve_task(request: HttpRequest, task_id: TaskId) -> TaskReply:
    """Return the state of a task and, when it is over, its result.

    A task that was never there, is of another account, or ended more than 24 hours ago is `UNKNOWN`.
    """
    caller = _caller(request)
    await rates().admit(caller.account_id, "tasks.query")
    task = await run_in_db_thread(store.find, caller.account_id, task_id)
    return records.reply(task, task_id=task_id, base=_base(request), request_id=request.request_id)


@router.post("/tasks/{task_id}/cancel", summary="Cancel a task", response=Canceled)
async def cancel_task(request: HttpRequest, task_id: TaskId) -> Canceled:
    """End a task that has not begun. One that has begun, or is over, goes on as it is: 400 `UnsupportedOperation`.

    A task whose work waits at another service is canceled there as well.
    """
    caller = _caller(request)
    await rates().admit(caller.account_id, "tasks.cancel")
    await withdrawal.cancel(caller.account_id, task_id)
    return Canceled(request_id=request.request_id)


def add_creation(kind: TaskKind, services: Router) -> None:
    """Give a kind the operation that creates tasks of it, on a router that stands at `/api/v1/services`."""

    async def create_task(request: HttpRequest, body: Any) -> Accepted:
        if not wants_task(request):
            raise AccessDenied("This model does not support synchronous calls; send X-DashScope-Async: enable.")
        return await _create(request, kind, body)

    parameters = [
        inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=HttpRequest),
        inspect.Parameter("body", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind.body),
    ]
    create_task.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    create_task.__name__ = f"create_{kind.path.replace('/', '_').replace('-', '_')}"
    services.post(
        f"/{kind.path}",
        summary=kind.title,
        description=kind.description,
        tags=["Tasks"],
        response=Accepted,
        exclude_none=True,
        openapi_extra=ASYNC,
    )(create_task)


def wants_task(request: HttpRequest) -> bool:
    """Return whether the caller asks for a task instead of the result itself."""
    return any(request.headers.get(name, "").lower() == "enable" for name in ("X-DashScope-Async", "X-Service-Async"))


async def create(request: HttpRequest, path: str) -> HttpResponse:
    """Create a task on a path that answers at once without the header.

    Raises:
        RequestRefused: if the request is not good, or this path makes no tasks.
    """
    kind = kind_at(path)
    try:
        body = kind.body.model_validate(json.loads(request.body))
    except pydantic.ValidationError as error:
        raise ValidationError([{**fault, "loc": ("body", "body", *fault["loc"])} for fault in error.errors()]) from None
    accepted = await _create(request, kind, body)
    return HttpResponse(accepted.model_dump_json(exclude_none=True), content_type="application/json")


async def _create(request: HttpRequest, kind: TaskKind, body: Any) -> Accepted:
    caller = _caller(request)
    caller.require("inference")
    await rates().admit(caller.account_id, "tasks.create")
    order = await kind.accept(caller, body)
    task = await run_in_db_thread(store.accept, caller, kind, order, request_id=request.request_id)
    output = records.Output(task_id=task.task_id, task_status="PENDING")
    return Accepted(output=output, request_id=request.request_id)


def _caller(request: HttpRequest) -> Caller:
    """Return the authenticated caller, whose key must have the scope `tasks`.

    Raises:
        AccessDenied: if the key may not be used for tasks.
    """
    caller: Caller = request.auth
    caller.require("tasks")
    return caller


def _base(request: HttpRequest) -> str:
    return str(request.build_absolute_uri("/"))


def _filter(query: ListQuery) -> store.Filter:
    """Return the filter of a list, from the query.

    Raises:
        InvalidParameter: if a time is none, or the range is empty or longer than 24 hours.
    """
    start = _moment(query.start_time, "start_time")
    end = _moment(query.end_time, "end_time")
    if start is None:
        end = end or timezone.now()
        start = end - LONGEST_RANGE
    end = end or start + LONGEST_RANGE
    if end < start:
        raise InvalidParameter("end_time lies before start_time.", param="end_time")
    if end - start > LONGEST_RANGE:
        raise InvalidParameter("start_time and end_time lie more than 24 hours apart.", param="start_time")
    status = Status(query.status) if query.status not in ("", UNKNOWN) else None
    return store.Filter(
        submitted_from=start,
        submitted_to=end + timedelta(seconds=1),  # a time given in seconds means all of its last one
        task_id=query.task_id or None,
        model_name=query.model_name or None,
        status=status,
        key_id=query.api_key_id or None,
    )


def _moment(text: str | None, name: str) -> datetime | None:
    if not text:
        return None
    try:
        if len(text) != 14 or not text.isascii() or not text.isdecimal():
            raise ValueError
        moment = datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        if moment.year not in YEARS:
            raise ValueError
    except ValueError:
        raise InvalidParameter(
            f"{name} must be a time as YYYYMMDDhhmmss, in UTC, of the years {YEARS.start} to {YEARS.stop - 1}.",
            param=name,
        ) from None
    return moment
