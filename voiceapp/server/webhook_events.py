"""Signals of one room, connected here to another that it does not know."""

from __future__ import annotations

from typing import Any

from voiceapp.tasks.models import Task
from voiceapp.tasks.signals import task_finished
from voiceapp.webhooks.events import Event, EventKind, publish


def connect() -> None:
    """Tasks that are over are told to webhook receivers."""
    task_finished.connect(tell_task_finished, sender=Task, dispatch_uid="webhooks")


def tell_task_finished(*, task: Task, **_: Any) -> None:
    """Publish it, inside the transaction that finishes the task."""
    publish(task.workspace_id, [Event(EventKind.TASK_FINISHED, task.task_id)])
