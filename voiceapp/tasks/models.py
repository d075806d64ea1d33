"""Tasks, their parts and the files they leave behind. Every change of a status is one conditional UPDATE."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from voiceapp.accounts.models import Account, ApiKey, Workspace
from voiceapp.formats import Facts
from voiceapp.leases.rows import Leased
from voiceapp.tasks.states import FINAL, TASK_STEPS, Status


def task_identifier() -> str:
    return str(uuid.uuid4())


def not_forgotten(ended_at: str = "ended_at") -> Q:
    """Return the condition for tasks that can still be asked for; `ended_at` is the path to the time of their end."""
    since = timezone.now() - timedelta(hours=settings.TASK_RETENTION_HOURS)
    return Q(**{f"{ended_at}__isnull": True}) | Q(**{f"{ended_at}__gte": since})


class Task(Leased):
    """One accepted piece of work; it has at least one part."""

    STEPS = TASK_STEPS

    task_id = models.CharField("task", max_length=36, unique=True, default=task_identifier, editable=False)
    """Identifier on the wire: a random UUID."""
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tasks")
    key = models.ForeignKey(
        ApiKey, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", verbose_name="API key"
    )
    kind = models.CharField(max_length=80)
    """`group/task/function`, as in the path that it was created on."""
    model_name = models.CharField("model", max_length=100)
    request_id = models.CharField(max_length=36, editable=False)
    """Identifier of the request that created it."""
    order = models.JSONField(default=dict)
    """Input of all parts together; checked before the task was accepted."""
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.PENDING)
    priority = models.SmallIntegerField(default=0)
    """Higher goes first, among the tasks of one account."""
    submitted_at = models.DateTimeField(default=timezone.now)
    scheduled_at = models.DateTimeField("started", null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    progress = models.FloatField(default=0.0)
    """0 to 1."""
    code = models.CharField(max_length=60, blank=True, default="")
    """Code of the failure, for programs; empty otherwise."""
    message = models.CharField(max_length=500, blank=True, default="")
    output = models.JSONField(default=dict, blank=True)
    """Fields that the kind adds to the response of a task that succeeded; files as `{"file": <TaskFile.name>}`."""
    usage = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("-submitted_at", "-id")
        indexes = (
            models.Index(fields=("status", "due_at"), name="task_due"),
            models.Index(fields=("status", "account", "-priority", "due_at"), name="task_next_of_account"),
            models.Index(fields=("account", "-submitted_at", "-id"), name="task_of_account"),
            models.Index(fields=("-submitted_at", "-id"), name="task_newest_first"),
            models.Index(fields=("ended_at",), name="task_ended", condition=Q(ended_at__isnull=False)),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(status__in=[*FINAL], ended_at__isnull=False)
                | Q(status__in=[Status.PENDING, Status.RUNNING], ended_at__isnull=True),
                name="task_ended_when_final",
            ),
        )

    def __str__(self) -> str:
        return f"{self.task_id}"

    def facts(self, **more: object) -> Facts:
        """Facts for lines of the log; `more` come first."""
        own = {"account": self.account_id, "caller": self.key, "kind": self.kind, "model": self.model_name}
        return Facts(**more, **own, request_id=self.request_id)


class Subtask(models.Model):
    """One part of a task. A part that is over is not done again when its task is claimed anew."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="subtasks", db_index=False)
    index = models.PositiveIntegerField()
    order = models.JSONField(default=dict)
    """Input of this part."""
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.PENDING)
    result = models.JSONField(default=dict, blank=True)
    """Fields that this part adds to `results`; files as `{"file": <TaskFile.name>}`."""
    usage = models.JSONField(default=dict, blank=True)
    code = models.CharField(max_length=60, blank=True, default="")
    message = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ("task", "index")
        constraints = (models.UniqueConstraint(fields=("task", "index"), name="subtask_once"),)

    def __str__(self) -> str:
        return f"{self.task} #{self.index}"


class Upload(models.Model):
    """A file that a caller sent to be the input of tasks; deleted when its time is over."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="uploads")
    key = models.CharField(max_length=300, unique=True)
    """Name that its owner uses, after `oss://`."""
    name = models.CharField(max_length=200)
    """Name in the storage: `uploads/…`."""
    content_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField()
    """Bytes."""
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.key}"


class StorageUse(models.Model):
    """Bytes of an account's files; see `storage_use`."""

    account = models.OneToOneField(Account, on_delete=models.CASCADE, primary_key=True, related_name="storage_use")
    result_bytes = models.PositiveBigIntegerField("results", default=0)
    """Bytes of its `TaskFile`s."""
    upload_bytes = models.PositiveBigIntegerField("uploads", default=0)

    class Meta:
        verbose_name = "storage use"
        verbose_name_plural = "storage use"
        ordering = ("-result_bytes", "account")

    def __str__(self) -> str:
        return f"{self.account}"


class TaskFile(models.Model):
    """A file in Django's storage that a task was given or has made; deleted with it."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=200, unique=True)
    """Name in the storage: `tasks/<task id>/…`."""
    content_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField()
    """Bytes."""

    def __str__(self) -> str:
        return f"{self.name}"
