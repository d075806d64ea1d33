"""Signals of one room, connected here to another that it does not know."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction
from django.utils import timezone

from voiceapp.tasks.models import Task
from voiceapp.tasks.signals import task_finished
from voiceapp.webhooks.events import Event, EventKind, publish

logger = logging.getLogger(__name__)


def connect() -> None:
    """Tasks that are over are told to webhook receivers and the log."""
    task_finished.connect(tell_task_finished, sender=Task, dispatch_uid="webhooks")


def tell_task_finished(*, task: Task, **_: Any) -> None:
    """Publish it, inside the transaction that finishes the task."""
    publish(task.workspace_id, [Event(EventKind.TASK_FINISHED, task.task_id)])
    seconds = round((timezone.now() - (task.scheduled_at or task.submitted_at)).total_seconds(), 1)
    facts = task.facts(status=str(task.status), code=task.code, seconds=seconds)
    transaction.on_commit(lambda: logger.info("task %s: ended, %s", task.task_id, facts))
