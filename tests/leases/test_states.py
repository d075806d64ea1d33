"""Statuses of rows: the tables, and the UPDATEs that take their steps."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Model
from django.utils import timezone

import voiceapp
from tests.conftest import Member
from tests.tasks.conftest import write
from voiceapp.errors import LocalProtocolError
from voiceapp.leases.states import StepTable, after, before, take
from voiceapp.tasks.models import Subtask, Task
from voiceapp.tasks.states import FINAL, PART_STEPS, TASK_STEPS, Status
from voiceapp.webhooks import states, store
from voiceapp.webhooks.events import EventKind
from voiceapp.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent
from voiceapp.webhooks.states import DELIVERY_STEPS, ENDPOINT_STEPS, DeliveryStatus, DisabledReason, EndpointStatus

PACKAGE = Path(voiceapp.__file__).parent

pytestmark = pytest.mark.django_db


def a_task(member: Member, status: str) -> Task:
    return write(member, status=status)


def a_part(member: Member, status: str) -> Subtask:
    return Subtask.objects.create(task=a_task(member, Status.RUNNING), index=1, status=status)


def an_endpoint(member: Member, status: str) -> WebhookEndpoint:
    made, _ = store.create(member.workspace.pk, url="http://127.0.0.1:9/", events=[EventKind.TASK_FINISHED])
    made.status = status
    made.disabled_reason = "" if status == EndpointStatus.ACTIVE else DisabledReason.MANUAL
    made.save()
    return made


def a_delivery(member: Member, status: str) -> Delivery:
    event = WebhookEvent.objects.create(workspace=member.workspace, kind=EventKind.TASK_FINISHED, body="{}")
    return Delivery.objects.create(
        event=event,
        endpoint=an_endpoint(member, str(EndpointStatus.ACTIVE)),
        status=status,
        finish_at=timezone.now() if status in states.FINAL else None,
    )


Make = Callable[[Member, str], Any]
TABLES: list[tuple[StepTable, Any, Make, dict[str, str]]] = [
    (TASK_STEPS, Status, a_task, {"column": "ended_at"}),
    (PART_STEPS, Status, a_part, {}),
    (DELIVERY_STEPS, DeliveryStatus, a_delivery, {"column": "finish_at"}),
    (ENDPOINT_STEPS, EndpointStatus, an_endpoint, {"reason": "disabled_reason"}),
]


def changes_of(status: str, column: str = "", reason: str = "") -> dict[str, object]:
    """What a row of this status must have beside it, by the constraints of its table."""
    if column:
        return {column: timezone.now() if status in (*FINAL, *states.FINAL) else None}
    return {reason: "" if status == EndpointStatus.ACTIVE else DisabledReason.MANUAL} if reason else {}


@pytest.mark.parametrize(("table", "statuses", "make", "beside"), TABLES)
def test_every_pair_of_status_and_step(
    table: StepTable, statuses: Iterable[str], make: Make, beside: dict[str, str], alice: Member
) -> None:
    for name in {step for _, step in table}:
        for status in statuses:
            row: Model = make(alice, status)
            rows = type(row)._default_manager.filter(pk=row.pk)
            took = take(rows, table, name, **changes_of(after(table, name), **beside))
            is_a_step = (status, name) in table
            assert (took, rows.get().status) == (int(is_a_step), table.get((status, name), status)), (status, name)
            row.delete()
            WebhookEndpoint.objects.all().delete()


@pytest.mark.parametrize(
    ("table", "first", "statuses"),
    [
        (TASK_STEPS, Status.PENDING, Status),
        (DELIVERY_STEPS, DeliveryStatus.PENDING, DeliveryStatus),
        (ENDPOINT_STEPS, EndpointStatus.ACTIVE, EndpointStatus),
    ],
)
def test_every_status_can_be_reached(table: StepTable, first: Any, statuses: Iterable[str]) -> None:
    assert {first, *table.values()} == set(statuses)


def test_a_part_never_runs_by_itself() -> None:
    assert {Status.PENDING, *PART_STEPS.values()} == set(Status) - {Status.RUNNING}


def test_a_task_that_is_over_stays_as_it_is() -> None:
    assert not [pair for pair in (*TASK_STEPS, *PART_STEPS) if pair[0] in FINAL]


def test_a_step_that_no_table_has_is_refused() -> None:
    for table in (TASK_STEPS, PART_STEPS, DELIVERY_STEPS, ENDPOINT_STEPS):
        with pytest.raises(LocalProtocolError, match="'sleep'"):
            before(table, "sleep")
        with pytest.raises(LocalProtocolError, match="'sleep'"):
            take(Task.objects.all(), table, "sleep")


def test_a_step_to_several_statuses_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="FAILED, SUCCEEDED"):
        after({(Status.PENDING, "end"): Status.FAILED, (Status.RUNNING, "end"): Status.SUCCEEDED}, "end")


def statuses_written(source: str) -> list[str]:
    """Calls of `update(status=…)` and assignments `….status = …` whose value is not a step of a table."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "updat" in node.func.attr:
            values = [keyword.value for keyword in node.keywords if keyword.arg == "status"]
        elif isinstance(node, ast.Assign):
            values = [
                node.value for target in node.targets if isinstance(target, ast.Attribute) and target.attr == "status"
            ]
        else:
            continue
        found += [ast.unparse(node) for value in values if ast.unparse(value).split("(")[0] not in ("step", "after")]
    return found


def test_a_status_changes_by_a_step_of_its_table_only() -> None:
    rooms = [path for room in ("tasks", "webhooks", "leases") for path in sorted((PACKAGE / room).glob("*.py"))]
    assert {path.name: found for path in rooms if (found := statuses_written(path.read_text()))} == {}


def test_a_status_that_is_written_past_the_tables_is_found() -> None:
    assert statuses_written("rows.update(status=Status.FAILED)")
    assert statuses_written("task.status = Status.FAILED")
    assert not statuses_written("task.status = step(TASK_STEPS, task.status, 'fail')")
