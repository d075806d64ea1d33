"""What is promised of tasks, with real processes that are killed, frozen and wrong about the time."""

from __future__ import annotations

import statistics
from datetime import datetime

from tests.leases.conftest import House


def waits_ms(house: House, ids: list[str]) -> list[float]:
    """Of tasks, how long it took until they were begun."""
    found = house.server.rows("SELECT task_id, submitted_at, scheduled_at FROM tasks_task")
    times = {
        row["task_id"]: [datetime.fromisoformat(str(row[at])) for at in ("submitted_at", "scheduled_at")]
        for row in found
    }
    return [(times[task][1] - times[task][0]).total_seconds() * 1000 for task in ids]


def test_a_worker_begins_what_another_process_accepts(house: House) -> None:
    worker = house.worker()
    ids = []
    for _ in range(5):
        ids.append(house.create(0.0))
        assert house.follow(ids[-1])["task_status"] == "SUCCEEDED"
    # PostgreSQL tells it at once, on SQLite it looks every second.
    assert statistics.median(waits_ms(house, ids)) < (200 if house.hears_of_work else 1500)
    worker.signal()
    assert worker.wait() == 0
