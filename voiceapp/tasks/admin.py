"""Tasks in the operators' site: to follow, to cancel while they wait, to do once more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.forms import Script
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, path
from django.utils import timezone

from voiceapp.leases.wake import wake
from voiceapp.tasks import files, store
from voiceapp.tasks.live import follow
from voiceapp.tasks.models import FINAL, Subtask, Task, task_identifier


class SubtaskInline(admin.TabularInline):
    model = Subtask
    fields = ("index", "status", "order", "result", "usage", "code", "message")
    readonly_fields = fields
    can_delete = False
    show_change_link = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Task)
class TaskAdmin(admin.ModelAdmin):
    list_display = ("submitted_at", "status", "done", "took", "kind", "model_name", "account", "code", "task_id")
    list_filter = ("status", "kind", "model_name")
    list_select_related = ("account",)
    search_fields = ("task_id", "account__name", "request_id")
    date_hierarchy = "submitted_at"
    show_full_result_count = False
    inlines = (SubtaskInline,)
    actions = ("cancel_waiting", "do_again")
    readonly_fields = ("done", "took")

    class Media:
        js = (Script("operators/tasks.js", defer=True),)

    def get_urls(self) -> list[URLPattern]:
        return [path("live/", self.live, name="tasks_live"), *super().get_urls()]

    async def live(self, request: HttpRequest) -> HttpResponseBase:
        """What the cells of tasks hold, as it changes."""
        return await follow(request, self.cells)

    def cells(self, row: Task) -> dict[str, str]:
        """The text of those cells that change while a task is worked on."""
        return {
            "status": str(row.get_status_display()),
            "done": self.done(row),
            "took": self.took(row),
            "code": row.code or "-",
        }

    @admin.display(description="progress")
    def done(self, row: Task) -> str:
        return f"{row.progress:.0%}"

    @admin.display(description="took")
    def took(self, row: Task) -> str:
        if row.scheduled_at is None:
            return "not begun"
        lasted = (row.ended_at or timezone.now()) - row.scheduled_at
        seconds = str(timedelta(seconds=max(0, int(lasted.total_seconds()))))
        return seconds if row.ended_at else f"{seconds} so far"

    @admin.action(description="Cancel those that wait", permissions=["delete"])
    def cancel_waiting(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        canceled = 0
        for task in queryset:
            try:
                store.cancel(task.account_id, task.task_id)
            except store.NotPending:
                continue
            canceled += 1
        self.message_user(request, f"Canceled {canceled} of {len(queryset)}; the others had begun or were over.")

    @admin.action(description="Do again, as new tasks", permissions=["delete"])
    def do_again(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        again = [_again(task) for task in queryset if task.status in FINAL]
        level = messages.SUCCESS if again else messages.WARNING
        self.message_user(request, f"{len(again)} new tasks; those that are not over were left alone.", level)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Task | None = None) -> bool:
        """Somebody may be working on one that is not over."""
        return bool(super().has_delete_permission(request, obj)) and (obj is None or obj.status in FINAL)

    def delete_model(self, request: HttpRequest, obj: Task) -> None:
        files.delete_all([obj.pk])
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        over = queryset.filter(status__in=FINAL)
        files.delete_all(list(over.values_list("pk", flat=True)))
        super().delete_queryset(request, over)


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
            request_id=task.request_id,
            order=task.order,
            priority=task.priority,
            submitted_at=Now(),
            due_at=Now(),
        )
        Subtask.objects.bulk_create(
            [Subtask(task=new, index=part.index, order=part.order) for part in task.subtasks.all()]
        )
        wake(store.LINE)
    return new
