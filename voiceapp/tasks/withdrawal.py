"""Cancelling a task that has begun here and only waits for its turn at another service."""

from __future__ import annotations

from voiceapp.database.thread import run_in_db_thread
from voiceapp.tasks import store
from voiceapp.tasks.kinds import WithdrawableKind, kinds
from voiceapp.tasks.states import FINAL, Status


async def cancel(account_id: int, task_id: str) -> None:
    """End a task that has not begun, neither here nor at the service that its work was handed to.

    Raises:
        NotPending: if it has begun or is over, or there is no such task of this account.
        EngineError: if the service cannot be asked.
    """
    try:
        await run_in_db_thread(store.cancel, account_id, task_id)
    except store.NotPending:
        if not await _is_given_up(account_id, task_id):
            raise
        await run_in_db_thread(_withdraw, account_id, task_id)


async def _is_given_up(account_id: int, task_id: str) -> bool:
    """Return whether the service gave up its part of a task; a part that was not handed over yet cannot be given up."""
    task = await run_in_db_thread(store.find, account_id, task_id)
    if task is None or task.status != Status.RUNNING:
        return False
    kind = kinds().get(task.kind)
    parts = [part.result for part in task.subtasks.all() if part.status not in FINAL]
    if not isinstance(kind, WithdrawableKind) or not parts or not all(parts):
        return False
    return await kind.withdraw(task.model_name, parts)


def _withdraw(account_id: int, task_id: str) -> None:
    """End the task, unless its worker has just seen what became of the work and ended it."""
    try:
        store.cancel(account_id, task_id, step="withdraw")
    except store.NotPending:
        return
