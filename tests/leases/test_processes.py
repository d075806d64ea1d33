"""What is promised of tasks, with real processes that are killed, frozen and wrong about the time."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import sqlite3
import statistics
import threading
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.leases.conftest import LEASE_S, House
from tests.realtime.product import Home
from tests.thorough import IS_THOROUGH

FINAL = ("SUCCEEDED", "FAILED", "CANCELED")
KILLINGS = 3 if IS_THOROUGH else 1
WRONG_CLOCK = """
import datetime
import os
import time

off_s = float(os.environ["CLOCK_OFF_S"])
right, right_time = datetime.datetime, time.time
time.time = lambda: right_time() + off_s


class Kind(type):
    def __instancecheck__(cls, value):
        return isinstance(value, right)


class Wrong(right, metaclass=Kind):
    @classmethod
    def now(cls, tz=None):
        return right.now(tz) + datetime.timedelta(seconds=off_s)


datetime.datetime = Wrong
"""
"""A `sitecustomize` by which Python tells the wrong time."""


def waits_ms(house: House, ids: list[str]) -> list[float]:
    """Of tasks, how long it took until they were begun."""
    found = house.server.rows("SELECT task_id, submitted_at, scheduled_at FROM tasks_task")
    times = {
        row["task_id"]: [datetime.fromisoformat(str(row[at])) for at in ("submitted_at", "scheduled_at")]
        for row in found
    }
    return [(times[task][1] - times[task][0]).total_seconds() * 1000 for task in ids]


def statuses(house: House) -> dict[str, str]:
    return {row["task_id"]: row["status"] for row in house.server.rows("SELECT task_id, status FROM tasks_task")}


def test_a_worker_begins_what_another_process_accepts(house: House) -> None:
    worker = house.worker()
    ids = []
    for _ in range(5):
        ids.append(house.create(0.0))
        assert house.follow(ids[-1])["task_status"] == "SUCCEEDED"
    # PostgreSQL tells it at once, on SQLite it looks every second.
    assert statistics.median(waits_ms(house, ids)) < (400 if house.hears_of_work else 3000)
    worker.signal()
    assert worker.wait() == 0


def test_a_task_is_canceled_or_run_and_never_both(house: House) -> None:
    with ThreadPoolExecutor(4) as pool:
        tasks = list(pool.map(house.create, [0.3] * 80))
        for starting in [pool.submit(house.worker) for _ in range(2)]:
            starting.result()
        house.follow(tasks[0], until="RUNNING")
        # Workers go on from the oldest, cancelling begins with the newest; they meet.
        outcomes = dict(zip(reversed(tasks), pool.map(house.cancel, reversed(tasks)), strict=True))
    canceled = {task for task, was_canceled in outcomes.items() if was_canceled}
    others = outcomes.keys() - canceled
    assert canceled
    assert {house.follow(task)["task_status"] for task in others} == {"SUCCEEDED"}
    assert {house.follow(task)["task_status"] for task in canceled} == {"CANCELED"}
    assert {task: times for task, times in house.times_begun().items() if task in outcomes} == dict.fromkeys(others, 1)


def test_a_worker_that_was_frozen_past_its_lease_changes_nothing(house: House) -> None:
    """It wakes up when another worker has finished one of its tasks, and still runs the other."""
    frozen = house.worker()
    brief, long = house.create(LEASE_S), house.create(4 * LEASE_S)
    for task in (brief, long):
        house.until_begun(task)
    (row,) = house.server.rows("SELECT leased_by FROM tasks_task WHERE task_id = ?", long)
    frozen_pid = int(row["leased_by"].split(":")[1])
    _freeze(house, frozen_pid)
    house.worker()
    assert house.follow(brief)["task_status"] == "SUCCEEDED"
    before = _everything_about(house, brief)
    os.kill(frozen_pid, signal.SIGCONT)
    frozen.wait_for("lease lost")
    for task in (brief, long):
        done = house.follow(task)
        assert done["task_status"] == "SUCCEEDED"
        assert done["results"][0]["process"] != frozen_pid
        assert house.times_begun()[task] == 2
    frozen.signal()
    assert frozen.wait() == 0
    assert _everything_about(house, brief) == before


def test_a_worker_that_was_frozen_goes_on_where_it_was(house: House) -> None:
    worker = house.worker()
    task = house.create(1.5 * LEASE_S)
    house.until_begun(task)
    (row,) = house.server.rows("SELECT leased_by FROM tasks_task WHERE task_id = ?", task)
    pid = int(row["leased_by"].split(":")[1])
    _freeze(house, pid)
    os.kill(pid, signal.SIGCONT)
    assert house.follow(task)["task_status"] == "SUCCEEDED"
    assert house.times_begun()[task] == 1
    worker.signal()
    assert worker.wait() == 0


def test_workers_need_not_agree_on_the_time(house: House, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WRONG_CLOCK)
    for off_s in (-60, 0, 60):
        house.worker(PYTHONPATH=str(tmp_path), CLOCK_OFF_S=str(off_s))
    tasks = [house.create(LEASE_S * 1.2) for _ in range(9)]
    assert {house.follow(task)["task_status"] for task in tasks} == {"SUCCEEDED"}
    begun = [(task, time_s) for task, time_s in house.begun() if task in tasks]
    assert sorted(task for task, _ in begun) == sorted(tasks)
    assert max(time_s for _, time_s in begun) - min(time_s for _, time_s in begun) > 50, "nobody was wrong"
    for row in house.server.rows("SELECT task_id, submitted_at, scheduled_at, ended_at FROM tasks_task"):
        if row["task_id"] in tasks:
            assert row["submitted_at"] <= row["scheduled_at"] <= row["ended_at"]


def test_no_task_is_lost_or_ends_twice_when_processes_are_killed(home: Home, tmp_path: Path) -> None:
    house = House(home, tmp_path / "house", WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8")
    chance, moments = random.Random(1), random.Random(5)
    accepted: list[str] = []
    seen: dict[str, list[tuple[str, str]]] = {}
    earlier = statuses(house).keys()
    over = threading.Event()

    def create(number: int) -> None:
        with contextlib.suppress(urllib.error.URLError, http.client.HTTPException, ConnectionError):
            accepted.append(house.create(chance.uniform(0, 0.3), parts=1 + number % 2))

    def watch() -> None:
        while not over.wait(0.05):
            for row in house.server.rows("SELECT task_id, status, ended_at FROM tasks_task"):
                states = seen.setdefault(row["task_id"], [])
                state = (row["status"], str(row["ended_at"]))
                if not states or states[-1] != state:
                    states.append(state)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        subscribed = {"url": "http://127.0.0.1:9/", "events": ["task.finished"]}
        assert house.server.ask("/api/v1/agentstudio/webhook_endpoints", subscribed).status == 200
        for _ in range(KILLINGS):
            worker = house.worker()
            with ThreadPoolExecutor(4) as pool:
                creating = [pool.submit(create, number) for number in range(16)]
                creating[moments.randrange(len(creating))].result()
                worker.signal(signal.SIGKILL)
                creating[moments.randrange(len(creating))].result()
                house.server.kill()
            house.server.start()
        found = statuses(house).keys() - earlier
        assert {house.follow(task)["task_status"] for task in found} == {"SUCCEEDED"}
    finally:
        over.set()
        watching.join()
        house.close()
    assert set(accepted) <= set(found)
    assert len(accepted) > KILLINGS * 4
    for states in seen.values():
        ends = [place for place, (status, _) in enumerate(states) if status in FINAL]
        assert ends in ([], [len(states) - 1]), states
    parts = house.server.rows(
        "SELECT task_id FROM tasks_task WHERE id IN (SELECT task_id FROM tasks_subtask WHERE status != 'SUCCEEDED')"
    )
    assert not {row["task_id"] for row in parts} & found
    told = house.server.rows("SELECT body FROM webhooks_webhookevent WHERE kind = 'task.finished'")
    assert sorted(task for row in told for task in found if task in row["body"]) == sorted(found)


def _freeze(house: House, pid: int) -> None:
    """Stop a process, though not within a transaction: SQLite has one lock, and everybody would wait for it."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        if house.hears_of_work:
            return
        path = house.server.environment["DATABASE_URL"].removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)
            else:
                return


def _everything_about(house: House, task: str) -> list[dict[str, Any]]:
    return [
        *house.server.rows("SELECT * FROM tasks_task WHERE task_id = ?", task),
        *house.server.rows(
            "SELECT * FROM tasks_subtask WHERE task_id = (SELECT id FROM tasks_task WHERE task_id = ?)", task
        ),
    ]
