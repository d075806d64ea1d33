"""The product in processes of their own, with a kind of task whose every beginning is written down."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import PostgresServer
from tests.realtime.product import Home, Product, make_home
from tests.serving import Process
from tests.thorough import usually

PATIENCE_S = 120.0
LEASE_S = 3.0
"""Renewed every second: a busy machine may be late with it."""


class House:
    """One installation: a server that accepts tasks, and as many workers as a test wishes."""

    def __init__(self, home: Home, folder: Path, **variables: Any) -> None:
        self._runs = folder / "runs"
        self._workers = ExitStack()
        folder.mkdir()
        self._runs.touch()
        self.server = Product(home, folder / "served", **{"RUNS_FILE": str(self._runs), **variables})

    @property
    def hears_of_work(self) -> bool:
        """Whether the database tells workers of what other processes accept."""
        return self.server.environment["DATABASE_URL"].startswith("postgres")

    def worker(self, **variables: str) -> Process:
        """A worker, once it is at work; it is ended with the test, or the house."""
        process = Process("worker", environment={**self.server.environment, **variables})
        self._workers.callback(process.kill)
        process.wait_for("Working on tasks as")
        return process

    def end_workers(self) -> None:
        self._workers.close()

    def close(self) -> None:
        self.end_workers()
        self.server.stop()

    def create(self, pause_s: float, parts: int = 1) -> str:
        asked = {"pause_s": pause_s, "parts": parts}
        return str(self.server.ask("/api/v1/services/test/pausing/pausing", asked).body["output"]["task_id"])

    def cancel(self, task_id: str) -> bool:
        """Whether it was canceled, as the server says."""
        status = self.server.ask(f"/api/v1/tasks/{task_id}/cancel", {}).status
        assert status in (200, 400)
        return status == 200

    def follow(self, task_id: str, until: str = "") -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            output: dict[str, Any] = self.server.ask(f"/api/v1/tasks/{task_id}").body["output"]
            if output["task_status"] in (until, "SUCCEEDED", "FAILED", "CANCELED"):
                return output
            assert time.monotonic() < deadline, output
            time.sleep(0.1)

    def begun(self) -> list[tuple[str, float]]:
        """The task of each beginning, and when that was in the eyes of its worker."""
        lines = [line.split() for line in self._runs.read_text().splitlines()]
        return [(task_id, float(time_s)) for task_id, time_s in lines]

    def until_begun(self, task: str) -> None:
        """Until the work itself has begun: a row is claimed a moment earlier."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.times_begun()[task]:
            assert time.monotonic() < deadline, "nobody began"
            time.sleep(0.01)

    def times_begun(self) -> Counter[str]:
        return Counter(task_id for task_id, _ in self.begun())


@pytest.fixture(scope="module", params=usually("postgresql", more=("sqlite",)))
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """An installation on each kind of database."""
    variables = {}
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        variables["DATABASE_URL"] = server.fresh()
    variables |= {"DJANGO_SETTINGS_MODULE": "tests.leases.settings", "RUNS_FILE": "/dev/null"}
    return make_home(tmp_path_factory.mktemp("home") / "home", TASK_LEASE_S=str(LEASE_S), **variables)


@pytest.fixture(scope="module")
def lasting_house(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(home, tmp_path_factory.mktemp("house") / "house", TASK_ENGINE="worker")
    yield house
    house.close()


@pytest.fixture
def house(lasting_house: House) -> Iterator[House]:
    """A server that leaves the work to workers; those of the test end with it."""
    yield lasting_house
    lasting_house.end_workers()
