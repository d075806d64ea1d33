"""Real processes: the vendor's own library as the caller, and a server that is killed while it works."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.realtime.product import Home, Product, make_home
from tests.serving import Process

SETTLED_S = 120.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home") / "home")


@pytest.fixture(scope="module")
def product(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    running = Product(
        home, tmp_path_factory.mktemp("served") / "served", FETCH_ALLOWED_NETWORKS="127.0.0.0/8", TASK_LEASE_S="2"
    )
    yield running
    running.stop()


def end_of(product: Product, task_id: str) -> str:
    deadline = time.monotonic() + SETTLED_S
    while (status := product.ask(f"/api/v1/tasks/{task_id}").body["output"]["task_status"]) in ("PENDING", "RUNNING"):
        assert time.monotonic() < deadline, product.log
        time.sleep(0.1)
    return str(status)


def test_no_accepted_task_is_lost_when_the_server_is_killed(product: Product) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 20
    accepted = []
    for round_ in range(2):
        for _ in range(6):
            body = {"model": "tts-1", "input": {"text": text}}
            accepted.append(product.ask("/api/v1/services/audio/tts/synthesis", body).body["output"]["task_id"])
        time.sleep(0.3 * round_)  # each time at another moment of the work
        product.kill()
        product.start()
    assert {end_of(product, task_id) for task_id in accepted} == {"SUCCEEDED"}
    rows = product.rows("SELECT task_id FROM tasks_task WHERE kind = 'audio/tts/synthesis'")
    assert sorted(row["task_id"] for row in rows) == sorted(accepted)
    billed = product.rows(
        "SELECT count(*) AS lines, count(DISTINCT request_id) AS requests FROM accounts_usagerecord "
        "WHERE operation = 'speech'"
    )
    assert billed == [{"lines": len(accepted), "requests": len(accepted)}]


def test_a_worker_process_does_what_a_server_leaves_to_it(home: Home, tmp_path: Path) -> None:
    server = Product(home, tmp_path / "served", TASK_ENGINE="worker")
    worker = Process("worker", environment=server.environment)
    try:
        body = {"model": "tts-1", "input": {"text": "Hello there."}}
        task_id = server.ask("/api/v1/services/audio/tts/synthesis", body).body["output"]["task_id"]
        assert end_of(server, task_id) == "SUCCEEDED"
        worker.signal()
        assert worker.wait() == 0
        assert server.rows("SELECT leased_by FROM tasks_task") != [{"leased_by": ""}]
        assert server.stop() == 0
    finally:
        worker.kill()
        server.stop()
