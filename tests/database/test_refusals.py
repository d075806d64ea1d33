"""What callers are told while the database is locked, exhausted, frozen or gone, and how soon."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
from websockets.exceptions import InvalidStatus
from websockets.http11 import Response
from websockets.sync.client import connect

from tests.postgres import PostgresServer, start_postgres
from tests.realtime.product import Product, Reply, make_home

AT_ONCE = 50
WAIT_S = 2.0
"""How long the server lets a request wait for the database."""
PATIENCE_S = 60.0
"""Of a caller. As long as the database stays away, so that a request is not helped by its coming back."""


def create(product: Product) -> Reply:
    return product.ask("/api/v1/services/test/pausing/pausing", {"pause_s": 0})


def all_at_once(product: Product) -> list[Reply]:
    together = threading.Barrier(AT_ONCE)

    def one(_: int) -> Reply:
        together.wait()
        return create(product)

    with ThreadPoolExecutor(AT_ONCE) as callers:
        return list(callers.map(one, range(AT_ONCE)))


def assert_refused(replies: list[Reply]) -> None:
    assert {reply.status for reply in replies} == {503}, [reply.body for reply in replies if reply.status != 503]
    assert {reply.body["code"] for reply in replies} == {"ServiceUnavailable"}
    assert {reply.retry_after for reply in replies} == {"1"}
    for reply in replies:
        assert "Try again" in reply.body["message"]
    print(f"the last of {len(replies)} was refused after {max(reply.after_s for reply in replies):.2f} s")


@contextmanager
def served(folder: Path, **variables: str) -> Iterator[Product]:
    """A server with one kind of task, which other processes would work on."""
    variables = {"DJANGO_SETTINGS_MODULE": "tests.leases.settings", "RUNS_FILE": "/dev/null", **variables}
    home = make_home(folder / "home", **variables)
    product = Product(home, folder / "served", TASK_ENGINE="worker", DATABASE_WAIT_S=str(WAIT_S))
    try:
        yield product
    finally:
        product.stop()


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with served(tmp_path_factory.mktemp("sqlite")) as product:
        yield product


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    """One that may be frozen: other tests lean on the shared one."""
    with start_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def on_postgres(own_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with served(tmp_path_factory.mktemp("postgresql"), DATABASE_URL=own_postgres.fresh()) as product:
        yield product


@contextmanager
def locked(product: Product) -> Iterator[None]:
    """Another process writes, and takes its time about it."""
    path = product.environment["DATABASE_URL"].removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_creates_are_refused_together_while_sqlite_is_locked(on_sqlite: Product) -> None:
    assert create(on_sqlite).status == 200
    with locked(on_sqlite):
        assert_refused(all_at_once(on_sqlite))
    assert create(on_sqlite).status == 200


def test_what_only_reads_is_served_while_sqlite_is_locked(on_sqlite: Product) -> None:
    task = create(on_sqlite).body["output"]["task_id"]
    with locked(on_sqlite):
        assert on_sqlite.ask(f"/api/v1/tasks/{task}").status == 200


def test_creates_are_refused_together_when_postgresql_has_no_connection_left(on_postgres: Product) -> None:
    assert create(on_postgres).status == 200
    with psycopg.connect(on_postgres.environment["DATABASE_URL"]) as connection:
        connection.execute("LOCK TABLE tasks_task, accounts_apikey IN ACCESS EXCLUSIVE MODE")
        assert_refused(all_at_once(on_postgres))
    assert create(on_postgres).status == 200


@pytest.mark.parametrize("away", [PostgresServer.frozen, PostgresServer.stopped])
def test_creates_are_refused_together_while_postgresql_is_away(
    on_postgres: Product, own_postgres: PostgresServer, away: Callable[[PostgresServer], AbstractContextManager[None]]
) -> None:
    assert create(on_postgres).status == 200
    with away(own_postgres):
        assert_refused(all_at_once(on_postgres))
    assert_back(on_postgres)


def test_a_socket_is_refused_while_postgresql_is_frozen(on_postgres: Product, own_postgres: PostgresServer) -> None:
    with own_postgres.frozen():
        replies = [knock(on_postgres, "doomed"), knock(on_postgres, "doomed")]
    assert [reply.status_code for reply in replies] == [503, 503]
    assert [reply.headers["Retry-After"] for reply in replies] == ["1", "1"]
    assert json.loads(replies[0].body)["code"] == "ServiceUnavailable"
    assert_back(on_postgres)
    assert knock(on_postgres, "doomed").status_code == 404, "it is known, and asks for a model that is not there"


def test_probes_say_that_postgresql_is_frozen(on_postgres: Product, own_postgres: PostgresServer) -> None:
    with own_postgres.frozen(), pytest.raises(urllib.error.HTTPError) as probe:
        urllib.request.urlopen(f"{on_postgres.origin}/readyz", timeout=PATIENCE_S)
    assert [reason["code"] for reason in json.load(probe.value)["reasons"]] == ["database_unreachable"]
    assert_back(on_postgres)
    deadline = time.monotonic() + PATIENCE_S
    while not is_ready(on_postgres):
        assert time.monotonic() < deadline, on_postgres.log
        time.sleep(0.1)


def is_ready(product: Product) -> bool:
    try:
        with urllib.request.urlopen(f"{product.origin}/readyz", timeout=PATIENCE_S):
            return True
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return False


def knock(product: Product, key: str) -> Response:
    """The answer to a handshake that is refused."""
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(
            f"{product.url}?model=none",
            additional_headers={"Authorization": f"Bearer {product.keys[key]}"},
            open_timeout=PATIENCE_S,
        ),
    ):
        pass
    return refused.value.response


def assert_back(product: Product) -> None:
    """Callers who try again, as they were told, are served without a restart."""
    deadline = time.monotonic() + PATIENCE_S
    while (reply := create(product)).status != 200:
        assert reply.status == 503, reply
        assert time.monotonic() < deadline, reply
        time.sleep(int(reply.retry_after or 1))
