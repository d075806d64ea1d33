"""`python -m tests.bench.tasks`: how fast tasks are taken, worked off and found again.

On SQLite, or in a database of its own on the server that `DATABASE_URL` names.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

ONE_BY_ONE = 100
AT_ONCE = 500
QUERIES = 2000
ACCOUNTS = 20
SIZES = (1_000, 100_000)
AIM_START_MS = 150


class Nothing:
    """A kind of task that is done at once, so that what is timed is the machinery."""

    path = "bench/nothing/nothing"
    title = description = "Nothing"
    time_limit_s = 10.0
    max_attempts = 3
    parallel = 1

    async def run(self, part: Any) -> Any:
        from voiceapp.tasks.kinds import Done

        return Done({"url": "none"})

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"results": list(results)}


def main() -> None:
    """Set up a database of its own and measure on it."""
    with tempfile.TemporaryDirectory(prefix="voiceapp-tasks-") as folder:
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/tasks.sqlite3")
        os.environ |= {"DEBUG": "1", "VAR_DIR": folder, "DJANGO_SETTINGS_MODULE": "voiceapp.settings"}
        import django
        from django.conf import settings
        from django.test.utils import get_runner

        django.setup()
        settings.DEBUG = False  # which would keep every query in memory
        settings.TASK_KINDS = ["tests.bench.tasks.Nothing"]
        settings.TASK_MAX_WAITING = 10**6
        settings.DATABASES["default"].setdefault("TEST", {})["NAME"] = (
            f"{folder}/tasks.sqlite3" if "sqlite" in os.environ["DATABASE_URL"] else "voiceapp_bench"
        )
        runner = get_runner(settings)(verbosity=0, interactive=False)
        databases = runner.setup_databases()
        try:
            _measure()
        finally:
            runner.teardown_databases(databases)


def _measure() -> None:
    from django.db import connection

    from voiceapp.accounts.auth import Caller
    from voiceapp.accounts.keys import new_key
    from voiceapp.accounts.models import Account
    from voiceapp.leases.loop import Loop
    from voiceapp.server.work import EmbeddedWork
    from voiceapp.tasks import store
    from voiceapp.tasks.kinds import Order, kind_at
    from voiceapp.tasks.line import TaskLine
    from voiceapp.tasks.models import FINAL, Task

    callers = []
    for number in range(ACCOUNTS):
        workspace = Account.objects.create(name=f"bench {number}").workspaces.create(name="Default")
        row, _ = new_key(workspace, "bench")
        row.save()
        callers.append(Caller(workspace.account_id, workspace.pk, row.pk, None, False, "bench"))
    kind = kind_at(Nothing.path)

    def accept(number: int) -> Task:
        return store.accept(callers[number % ACCOUNTS], kind, Order("none"), request_id="bench")

    print(f"On {connection.vendor}\n")
    finished = threading.Semaphore(0)
    from voiceapp.tasks.signals import task_finished

    def count(**_: object) -> None:
        finished.release()

    task_finished.connect(count)
    work = EmbeddedWork(Loop([TaskLine()]))
    work.start()
    for number in range(ONE_BY_ONE):
        accept(number)
        finished.acquire(timeout=30)
    waits = [
        (task.scheduled_at - task.submitted_at) / timedelta(milliseconds=1)
        for task in Task.objects.filter(status__in=FINAL, scheduled_at__isnull=False)
    ]
    _print("from created to begun", waits)
    print(f"    the aim is p95 <= {AIM_START_MS} ms\n")
    began = time.perf_counter()
    for number in range(AT_ONCE):
        accept(number)
    created_s = time.perf_counter() - began
    for _ in range(AT_ONCE):
        finished.acquire(timeout=60)
    print(f"{AT_ONCE / created_s:8.0f} tasks/s created while others are worked off")
    print(f"{AT_ONCE / (time.perf_counter() - began):8.0f} tasks/s created and finished\n")
    work.stop()

    for size in SIZES:
        missing = size - Task.objects.count()
        Task.objects.bulk_create(
            (
                Task(
                    account_id=callers[number % ACCOUNTS].account_id,
                    workspace_id=callers[number % ACCOUNTS].workspace_id,
                    kind=Nothing.path,
                    model_name="none",
                    request_id="bench",
                )
                for number in range(missing)
            ),
            batch_size=2000,
        )
        ids = list(Task.objects.values_list("account_id", "task_id"))
        asked = [random.choice(ids) for _ in range(QUERIES)]
        _print(f"query among {size:,} tasks", _times(lambda pair: store.find(*pair), asked))


def _times(call: Callable[[Any], object], arguments: Sequence[Any]) -> list[float]:
    took = []
    for argument in arguments:
        began = time.perf_counter()
        call(argument)
        took.append((time.perf_counter() - began) * 1000)
    return took


def _print(what: str, took_ms: Sequence[float]) -> None:
    ordered = sorted(took_ms)
    print(f"{statistics.median(ordered):8.2f} ms p50 {ordered[int(len(ordered) * 0.95)]:8.2f} ms p95   {what}")


if __name__ == "__main__":
    main()
