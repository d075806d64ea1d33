"""Tasks in the operators' site: to follow, to cancel or reorder while they wait, to do once more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Greatest, Least, Now
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from unfold.decorators import display

from voiceapp.accounts.models import MAX_PRIORITY
from voiceapp.accounts.own_rows import OwnFilter, OwnRows
from voiceapp.catalogue.lookup import catalogue
from voiceapp.formats import duration, request_id, size
from voiceapp.http.admin import LABELS, LiveAdmin, ReadOnlyInline, RecordsAdmin, column
from voiceapp.leases.wake import wake
from voiceapp.tasks import store
from voiceapp.tasks.kinds import kinds
from voiceapp.tasks.models import StorageUse, Subtask, Task, task_identifier
from voiceapp.tasks.retention import forget
from voiceapp.tasks.signals import QUEUE_NAME
from voiceapp.tasks.states import FINAL, Status
from voiceapp.tasks.storage import files

LONGEST_SHOWN = 300
"""Characters of a text on a page; an order may hold a book."""
NOW = ("task_id", "shown_status", "done", "took")
"""Fields that change while a task is worked on."""
MOST_WATCHED = 200
"""Newest tasks, of which a change renews the list."""


def readable(value: Any) -> str:
    """Format stored JSON as HTML: a line for each field, each `{"file": name}` as a link."""
    if isinstance(value, dict) and value.keys() == {"file"}:
        name = str(value["file"])
        return str(format_html('<a href="{}">{}</a>', files.link(name, "/"), Path(name).name))
    if value in ({}, []):
        return "–"
    if isinstance(value, dict | list):
        named = value.items() if isinstance(value, dict) else ((number, item) for number, item in enumerate(value, 1))
        lines = [(name, readable(item)) for name, item in named if item not in (None, "", [], {})]
        return str(format_html('<div class="fields">{}</div>', format_html_join("", "<div>{}: {}</div>", lines)))
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… ({len(text):,} characters)"


class SubtaskInline(ReadOnlyInline):
    model = Subtask
    fields = ("index", "status", "came_to", "asked", "used")
    readonly_fields = fields

    asked = column("order", "asked for", shown=readable)
    used = column("usage", "usage", shown=readable)

    @admin.display(description="result")
    def came_to(self, row: Subtask) -> str:
        return f"{row.code}: {row.message}" if row.code else readable(row.result)


class KnownFilter(admin.AllValuesFieldListFilter):
    """Filter by the kinds of tasks and the models that this server has, without a look at all rows."""

    def __init__(self, field: Any, *args: Any, **options: Any) -> None:
        super().__init__(field, *args, **options)
        known = {"kind": kinds(), "model_name": {card.name for card in catalogue().all()}}
        self.lookup_choices = sorted(known[field.name])


@admin.register(Task)
class TaskAdmin(OwnRows, LiveAdmin):
    list_display = (
        "submitted_at",
        "shown_status",
        "done",
        "took",
        "work",
        "account",
        "code",
        "priority",
        "task_id",
    )
    list_filter = (
        "status",
        ("kind", KnownFilter),
        ("model_name", KnownFilter),
        ("account", OwnFilter),
        ("key", OwnFilter),
        "submitted_at",
    )
    list_select_related = ()
    search_fields = ("task_id__startswith", "request_id__startswith")
    inlines = (SubtaskInline,)
    actions = ("cancel_waiting", "stop_running", "raise_waiting", "lower_waiting", "do_again")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "task_id",
                    "shown_status",
                    "done",
                    "took",
                    "kind",
                    "model_name",
                    "workspace",
                    "key",
                    "priority",
                )
            },
        ),
        ("What it came to", {"fields": ("came_to", "used", "code", "message")}),
        (
            "How it went",
            {"fields": ("submitted_at", "scheduled_at", "ended_at", "attempts", "worker", "request_id")},
        ),
        (
            "What was asked for",
            {"fields": ("asked",), "description": "For all subtasks; the rest stands with each of them."},
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        return super().get_queryset(request).prefetch_related("account")  # a join makes SQLite sort all rows

    def state(self, tasks: QuerySet[Task], row: str) -> list[tuple[Any, ...]]:
        tasks = tasks.order_by("-pk")
        shown = tasks.filter(pk=row) if store.ROW_ID.fullmatch(row) else tasks[:MOST_WATCHED]
        return list(shown.values_list("pk", "version", "status", "progress"))

    @display(description="status", ordering="status", label=LABELS)
    def shown_status(self, row: Task) -> str:
        return str(row.get_status_display())

    done = column("progress", "progress", shown="{:.0%}".format)
    asked = column("order", "order", shown=readable)
    used = column("usage", "usage", shown=readable)

    @admin.display(description="kind and model", ordering="kind")
    def work(self, row: Task) -> str:
        return str(format_html("{}<br>{}", row.kind, row.model_name))

    @admin.display(description="worker")
    def worker(self, row: Task) -> str:
        return row.leased_by or "–"

    @admin.display(description="took")
    def took(self, row: Task) -> str:
        if row.scheduled_at is None:
            return "not begun"
        lasted = (row.ended_at or timezone.now()) - row.scheduled_at
        seconds = duration(max(0.0, lasted.total_seconds()))
        return seconds if row.ended_at else f"{seconds} so far"

    @admin.display(description="result")
    def came_to(self, row: Task) -> str:
        rest = {name: value for name, value in row.output.items() if name != "results"}
        return readable(rest) if rest or not row.output else "One for each subtask, below."

    @admin.action(description="Cancel those that wait", permissions=["delete"])
    def cancel_waiting(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        self._end(request, queryset, "cancel", "had begun or were over")

    @admin.action(description="Stop those that run", permissions=["delete"])
    def stop_running(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        self._end(request, queryset, "withdraw", "had not begun or were over")

    def _end(self, request: HttpRequest, queryset: QuerySet[Task], step: str, why_not: str) -> None:
        canceled = 0
        for task in queryset:
            try:
                store.cancel(task.account_id, task.task_id, step=step)
            except store.NotPending:
                continue
            canceled += 1
        self.message_user(request, f"Canceled {canceled} of {len(queryset)}; the others {why_not}.")

    @admin.action(description="Raise the priority of those that wait", permissions=["delete"])
    def raise_waiting(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        self._shift(request, queryset, 1)

    @admin.action(description="Lower the priority of those that wait", permissions=["delete"])
    def lower_waiting(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        self._shift(request, queryset, -1)

    def _shift(self, request: HttpRequest, queryset: QuerySet[Task], by: int) -> None:
        bounded = Greatest(Least(F("priority") + by, Value(MAX_PRIORITY)), Value(-MAX_PRIORITY))
        shifted = queryset.filter(status=Status.PENDING).update(priority=bounded)
        self.message_user(
            request,
            f"{'Raised' if by > 0 else 'Lowered'} {shifted} of {len(queryset)}; the others had begun or were over. "
            "Of the tasks of one account that wait, those with the highest priority go first.",
        )

    @admin.action(description="Do again, as new tasks", permissions=["delete"])
    def do_again(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        again = [_again(task) for task in queryset if task.status in FINAL]
        level = messages.SUCCESS if again else messages.WARNING
        self.message_user(request, f"Began {len(again)} of {len(queryset)} anew; the others are not over.", level)

    def has_delete_permission(self, request: HttpRequest, obj: Task | None = None) -> bool:
        """A worker may be working on a task that is not over."""
        return bool(super().has_delete_permission(request, obj)) and (obj is None or obj.status in FINAL)

    def delete_model(self, request: HttpRequest, obj: Task) -> None:
        forget([obj.pk])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        forget(list(queryset.filter(status__in=FINAL).values_list("pk", flat=True)))


@admin.register(StorageUse)
class StorageUseAdmin(OwnRows, RecordsAdmin):
    """Bytes of files of each account, and how many it may keep."""

    list_display = ("account", "results", "results_share", "uploads", "uploads_share")
    list_select_related = ("account",)
    search_fields = ("account__name",)
    ordering = ("-result_bytes", "account")

    @admin.display(description="results of tasks", ordering="result_bytes")
    def results(self, row: StorageUse) -> str:
        return f"{size(row.result_bytes)} of {size(settings.RESULT_QUOTA_BYTES)}"

    @admin.display(description="used")
    def results_share(self, row: StorageUse) -> str:
        return _share(row.result_bytes, settings.RESULT_QUOTA_BYTES)

    @admin.display(ordering="upload_bytes")
    def uploads(self, row: StorageUse) -> str:
        return f"{size(row.upload_bytes)} of {size(settings.UPLOAD_QUOTA_BYTES)}"

    @admin.display(description="used")
    def uploads_share(self, row: StorageUse) -> str:
        return _share(row.upload_bytes, settings.UPLOAD_QUOTA_BYTES)


def _share(used: int, quota: int) -> str:
    return f"{used / quota:.0%}" if quota else "–"


def _again(task: Task) -> Task:
    """A new task for the same order, in the name of the same key."""
    with transaction.atomic():
        new: Task = Task.objects.create(
            task_id=task_identifier(),
            account_id=task.account_id,
            workspace_id=task.workspace_id,
            key_id=task.key_id,
            kind=task.kind,
            model_name=task.model_name,
            request_id=request_id(),
            order=task.order,
            priority=task.priority,
            submitted_at=Now(),
            due_at=Now(),
        )
        Subtask.objects.bulk_create(
            [Subtask(task=new, index=part.index, order=part.order) for part in task.subtasks.all()]
        )
        wake(QUEUE_NAME)
    return new
