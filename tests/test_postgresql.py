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
    "work": usually(
        *("tests/leases/test_rows.py", "tests/tasks/test_api.py"),
        more=("tests/tasks/storage/test_uploads.py", "tests/tasks/storage/test_storage_use.py"),
    ),
    "news": usually(
        *("tests/database/test_patience.py", "tests/webhooks/test_queue.py", "tests/webhooks/test_fairness.py"),
        *("tests/accounts/test_budgets.py", "tests/realtime/lifetime/test_stale_sessions.py"),
        *("tests/realtime/test_held_seats.py", "tests/realtime/lifetime/test_process_lease.py"),
        "tests/test_migrations.py::test_rows_of_release_1_0_0_survive_an_upgrade",
        "tests/realtime/records/test_turn_charges.py::test_several_sessions_spend_no_more_than_one_turn_each_beyond_the_budget",
        more=(
            *("tests/webhooks/test_recording.py", "tests/webhooks/test_inside.py", "tests/webhooks/test_events.py"),
            *("tests/accounts/test_units.py", "tests/accounts/test_ledger.py"),
        ),
    ),
}
"""Two runs: of leased work, and of what is told and charged. A run of its own for each file would cost its start."""


@pytest.mark.parametrize("part", LEANING)
def test_it_holds_on_postgresql(postgres: PostgresServer, part: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        # The database goes with its server; to drop it would wait for connections of threads that are gone.
        [sys.executable, "-m", "pytest", "-q", "--reuse-db", "-pno:cacheprovider", "-pno:xdist", *LEANING[part]],
        cwd=ROOT,
        env={**environment, "DATABASE_URL": postgres.fresh()},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout
