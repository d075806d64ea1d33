"""A PostgreSQL that is gone, or frozen, for a while: sessions go on, nothing that was accepted is lost, no restart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outages.conftest import (
    OUTAGE_S,
    accepted,
    converse,
    create,
    until_accepted,
    until_over,
    until_written,
)
from tests.postgres import PostgresServer, start_postgres
from tests.realtime.product import Product, make_home
from tests.realtime.talker import call
from tests.thorough import usually


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    """One that may go: other tests lean on the shared one."""
    with start_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def product(own_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder: Path = tmp_path_factory.mktemp("product")
    home = make_home(folder / "home", DATABASE_URL=own_postgres.fresh())
    running = Product(home, folder / "served", TASK_LEASE_S="5", DATABASE_WAIT_S="2")
    yield running
    running.stop()


@pytest.mark.parametrize("how", usually("frozen", more=("stopped",)))
async def test_sessions_and_tasks_outlive_a_database_that_is_away(
    product: Product, own_postgres: PostgresServer, how: str
) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        session_id = talker.all("session.created")[0]["session"]["id"]
        await converse(talker, [1])
        tasks = [accepted(product) for _ in range(4)]
        away = getattr(own_postgres, how)()
        await asyncio.to_thread(away.__enter__)
        try:
            until = time.monotonic() + OUTAGE_S
            turns = 1
            while time.monotonic() < until or turns < 3:
                turns += 1
                await converse(talker, [turns])
            refused = await asyncio.to_thread(create, product)
            assert (refused.status, refused.retry_after) == (503, "1"), refused
        finally:
            await asyncio.to_thread(away.__exit__, None, None, None)
        tasks.append(await until_accepted(product))
        turns += 1
        await converse(talker, [turns])
        await until_over(product, tasks)
    await until_written(product, session_id, turns)
    rows = product.rows("SELECT task_id FROM tasks_task WHERE status = 'SUCCEEDED'")
    assert {row["task_id"] for row in rows} >= set(tasks)
    async with call(product.url, product.keys["good"]) as another:
        await converse(another, [1])


@pytest.mark.parametrize("how", usually("stopped", more=("frozen",)))  # what is frozen answers at last, untried again
async def test_what_a_session_leaves_is_written_when_the_database_is_back(
    product: Product, own_postgres: PostgresServer, how: str
) -> None:
    """It ends while the database is away, and its seat is free at once."""
    async with call(product.url, product.keys["good"]) as talker:
        session_id = talker.all("session.created")[0]["session"]["id"]
        await converse(talker, [1])
        away = getattr(own_postgres, how)()
        await asyncio.to_thread(away.__enter__)
        try:
            await converse(talker, [2])
            await talker.socket.close()
            await talker.wait_closed()
            await asyncio.sleep(OUTAGE_S)
        finally:
            await asyncio.to_thread(away.__exit__, None, None, None)
    await until_written(product, session_id, 2)
