"""What leans on the database most, once more on PostgreSQL: rows are locked and compared there in other ways."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import PostgresServer
from tests.thorough import usually

ROOT = Path(__file__).resolve().parent.parent
LEANING = {
    "patience": ["tests/database/test_patience.py"],
    "leases": ["tests/leases/test_rows.py"],
    "tasks": usually(
        "tests/tasks/test_api.py",
        more=("tests/tasks/test_uploads.py", "tests/tasks/test_storage_use.py"),
    ),
    "webhooks": usually(
        *("tests/webhooks/test_queue.py", "tests/webhooks/test_fairness.py"),
        more=("tests/webhooks/test_recording.py", "tests/webhooks/test_inside.py", "tests/webhooks/test_events.py"),
    ),
    "books": usually(
        *("tests/accounts/test_budgets.py", "tests/realtime/test_stale_sessions.py"),
        "tests/realtime/test_turn_charges.py::test_several_sessions_spend_no_more_than_one_turn_each_beyond_the_budget",
        more=("tests/accounts/test_units.py", "tests/accounts/test_ledger.py"),
    ),
}


@pytest.mark.parametrize("room", LEANING)
def test_it_holds_on_postgresql(postgres: PostgresServer, room: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *LEANING[room]],
        cwd=ROOT,
        env={**environment, "DATABASE_URL": postgres.fresh()},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout
