"""Waiting for a task of an account to end, and what its caller then hears."""

from __future__ import annotations

from collections.abc import Mapping

from voiceapp.database.thread import DatabaseUnavailable, run_in_db_thread
from voiceapp.tasks.models import Task
from voiceapp.tasks.states import FINAL, Status
from voiceapp.tasks.streams import MAX_TASKS, task_watcher

MOST_QUIET_S = 60.0
"""Longest wait without a look at the database."""
NONE_UNDER_WAY = "No task of yours is under way."
CANNOT_TELL = "I cannot watch your tasks now."
ENDS: Mapping[str, str] = {
    Status.SUCCEEDED: "Your task is done.",
    Status.FAILED: "Your task has failed.",
    Status.CANCELED: "Your task was canceled.",
}


async def next_end(account_id: int, key_id: int | None) -> str:
    """Wait until one of the tasks ends that an account has under way now; returns a sentence about it.

    It returns at once when there is none. With a `key_id`, the key has to stay good.
    """
    watcher = task_watcher()
    if not watcher.has_room(account_id):
        return CANNOT_TELL
    try:
        ids = await run_in_db_thread(_under_way, account_id)
    except DatabaseUnavailable:
        return CANNOT_TELL
    if not ids:
        return NONE_UNDER_WAY
    with watcher.follow(ids, account_id=account_id, key_id=key_id) as follower:
        async for news in follower.news(MOST_QUIET_S):
            for task in news.values():
                if task is not None and task.status in FINAL:
                    return ENDS[task.status]
    return CANNOT_TELL


def _under_way(account_id: int) -> list[int]:
    tasks = Task.objects.filter(account_id=account_id).exclude(status__in=FINAL)
    return list(tasks.order_by("-submitted_at").values_list("pk", flat=True)[:MAX_TASKS])
