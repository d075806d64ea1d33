"""What leans on the database most, once more on PostgreSQL: rows are locked and compared there in other ways."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import PostgresServer

ROOT = Path(__file__).resolve().parent.parent
LEANING = {
    "leases": ["tests/leases/test_rows.py"],
    "tasks": ["tests/tasks/test_api.py", "tests/tasks/test_uploads.py"],
    "webhooks": [
        "tests/webhooks/test_line.py",
        "tests/webhooks/test_fairness.py",
        "tests/webhooks/test_recording.py",
        "tests/webhooks/test_inside.py",
        "tests/webhooks/test_events.py",
    ],
    "books": ["tests/accounts/test_quotas.py", "tests/accounts/test_ledger.py", "tests/realtime/test_leftovers.py"],
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
