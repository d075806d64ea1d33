"""A bad network before the database, Redis, a chat server and the client: what is slow is served, what is gone is said.

Each part stands behind a TCP proxy that delays, narrows to 10 kB/s, cuts its connections, or holds them half open.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.accounts.redis import RedisServer
from tests.outages.conftest import (
    OUTAGE_S,
    accepted,
    converse,
    create,
    in_writing,
    until_accepted,
    until_over,
    until_written,
)
from tests.outages.faults import FaultProxy, Faults
from tests.ports import free_port
from tests.postgres import PostgresServer
from tests.realtime.chat_server import KEY, ChatServer
from tests.realtime.conftest import Serve
from tests.realtime.product import Product, make_home
from tests.realtime.talker import call
from tests.thorough import usually

NARROW = 10_000
TOO_LATE_S = 15.0
"""For a refusal: five seconds are promised, to those whose machine does not run tests meanwhile."""
EMBEDDING = {"model": "text-embedding-v4", "input": "A cat sits on the mat."}
EMBEDDINGS = "/compatible-mode/v1/embeddings"

Proxied = Callable[[int], FaultProxy]


@pytest.fixture(scope="module")
def proxies() -> Iterator[list[FaultProxy]]:
    """All of this module, until its end."""
    proxies: list[FaultProxy] = []
    yield proxies
    for proxy in proxies:
        proxy.close()


@pytest.fixture(scope="module")
def proxied(proxies: list[FaultProxy]) -> Proxied:
    def before(port: int) -> FaultProxy:
        proxies.append(FaultProxy(port))
        return proxies[-1]

    return before


@pytest.fixture(autouse=True)
def _mended(proxies: list[FaultProxy]) -> Iterator[None]:
    """All proxies pass everything again after a test."""
    yield
    for proxy in proxies:
        proxy.faults = Faults()


# ── The database ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def database(postgres: PostgresServer, proxied: Proxied) -> FaultProxy:
    return proxied(postgres.port)


@pytest.fixture(scope="module")
def on_postgres(
    postgres: PostgresServer, database: FaultProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    direct = postgres.fresh()
    home = make_home(tmp_path_factory.mktemp("home") / "home", DATABASE_URL=direct)
    through = direct.replace(f":{postgres.port}/", f":{database.port}/")
    folder = tmp_path_factory.mktemp("served") / "served"
    running = Product(home, folder, DATABASE_URL=through, DATABASE_WAIT_S="5", TASK_LEASE_S="5")
    yield running
    running.stop()


@pytest.mark.parametrize("faults", usually(Faults(bytes_per_s=NARROW), more=(Faults(delay_s=0.05),)))
async def test_a_slow_way_to_the_database_holds_up_and_loses_nothing(
    on_postgres: Product, database: FaultProxy, faults: Faults
) -> None:
    database.faults = faults
    async with call(on_postgres.url, on_postgres.keys["good"]) as talker:
        session_id = await in_writing(talker)
        task = await until_accepted(on_postgres)
        await converse(talker, [1, 2])
    database.faults = Faults()
    await until_over(on_postgres, [task])
    await until_written(on_postgres, session_id, 2)


@pytest.mark.parametrize("how", usually("half open", more=("cut",)))
async def test_a_way_to_the_database_that_breaks_is_found_again(
    on_postgres: Product, database: FaultProxy, how: str
) -> None:
    async with call(on_postgres.url, on_postgres.keys["good"]) as talker:
        session_id = await in_writing(talker)
        await converse(talker, [1])
        task = await asyncio.to_thread(accepted, on_postgres)
        if how == "cut":
            database.faults = Faults(is_refusing=True)
            database.cut()
        else:
            database.faults = Faults(is_half_open=True)
        until = time.monotonic() + OUTAGE_S
        begun = time.monotonic()
        refused = await asyncio.to_thread(create, on_postgres)
        assert (refused.status, refused.retry_after) == (503, "1"), refused
        assert time.monotonic() - begun < TOO_LATE_S
        await converse(talker, [2])
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        database.faults = Faults()
        tasks = [task, await until_accepted(on_postgres)]
        await converse(talker, [3])
    await until_over(on_postgres, tasks)
    await until_written(on_postgres, session_id, 3)


# ── Redis ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with tempfile.TemporaryDirectory(prefix="redis-", dir="/tmp") as folder:
        server = RedisServer(Path(folder), port=free_port())
        server.start()
        yield server
        server.stop()


@pytest.mark.parametrize(("number", "how"), enumerate(usually("narrow", "half open", more=("delayed", "cut"))))
async def test_calls_are_served_and_limited_whatever_happens_on_the_way_to_redis(
    redis: RedisServer, proxied: Proxied, serve: Serve, number: int, how: str
) -> None:
    proxy = proxied(redis.port)
    product = serve(RATE_LIMITS="embedding=3/600", REDIS_URL=f"redis://127.0.0.1:{proxy.port}/{number}")
    assert (await asyncio.to_thread(product.ask, EMBEDDINGS, EMBEDDING)).status == 200
    proxy.faults = {
        "delayed": Faults(delay_s=0.05),
        "narrow": Faults(bytes_per_s=NARROW),
        "cut": Faults(is_refusing=True),
        "half open": Faults(is_half_open=True),
    }[how]
    if how == "cut":
        proxy.cut()
    statuses = []
    for _ in range(3):
        begun = time.monotonic()
        statuses.append((await asyncio.to_thread(product.ask, EMBEDDINGS, EMBEDDING)).status)
        assert time.monotonic() - begun < TOO_LATE_S
    assert statuses == [200, 200, 429]
    async with call(product.url, product.keys["good"]) as talker:
        await converse(talker, [1])
    assert "Traceback" not in product.log


# ── A service elsewhere ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def chat_proxy(proxied: Proxied) -> Iterator[FaultProxy]:
    with ChatServer() as server:
        yield proxied(server.port)


@pytest.fixture(scope="module")
def product(chat_proxy: FaultProxy, serve: Serve) -> Product:
    """A server with a chat server behind a proxy, which soon misses a client."""
    return serve(
        CHAT_BASE_URL=f"http://127.0.0.1:{chat_proxy.port}/v1",
        CHAT_API_KEY=KEY,
        CHAT_MODEL="somewhere",
        CHAT_TIMEOUT_S="3",
        PING_S="2",
        SEND_TIMEOUT_S="5",
    )


@pytest.mark.parametrize("faults", usually(Faults(bytes_per_s=NARROW), more=(Faults(delay_s=0.05),)))
async def test_a_slow_way_to_a_chat_server_only_takes_longer(
    product: Product, chat_proxy: FaultProxy, faults: Faults
) -> None:
    chat_proxy.faults = faults
    async with call(product.url, product.keys["good"]) as talker:
        await converse(talker, [1])


@pytest.mark.parametrize("how", usually("half open", more=("cut",)))
async def test_a_way_to_a_chat_server_that_breaks_fails_the_reply_and_not_the_session(
    product: Product, chat_proxy: FaultProxy, how: str
) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await converse(talker, [1])
        if how == "cut":
            chat_proxy.faults = Faults(is_refusing=True)
            chat_proxy.cut()
        else:
            chat_proxy.faults = Faults(is_half_open=True)
        await talker.ask("Spell necessary.")
        done = await talker.wait("response.done", count=2, timeout_s=60)
        assert done["response"]["status"] == "failed"
        chat_proxy.faults = Faults()
        chat_proxy.cut()
        await converse(talker, [3])
    assert "Traceback" not in product.log


# ── The client ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_client_behind_a_bad_network_is_served_or_missed(product: Product, proxied: Proxied) -> None:
    proxy = proxied(product.port)
    url = product.url.replace(product.address, f"127.0.0.1:{proxy.port}")
    proxy.faults = Faults(delay_s=0.1)
    async with call(url, product.keys["good"]) as talker:
        await converse(talker, [1])
    proxy.faults = Faults(bytes_per_s=NARROW)
    async with call(url, product.keys["good"]) as talker:
        await in_writing(talker)
        await converse(talker, [1])
    proxy.faults = Faults()
    async with call(url, product.keys["good"]) as cut, call(url, product.keys["good"]) as lost:
        await asyncio.gather(converse(cut, [1]), converse(lost, [1]))
        proxy.faults = Faults(is_half_open=True)
        await product.row(  # pings are not answered any more
            "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM realtime_realtimesession WHERE ended_at IS NULL)",
            within_s=30,
        )
        proxy.cut()
    ends = product.rows("SELECT close_code FROM realtime_realtimesession ORDER BY started_at DESC LIMIT 2")
    assert {row["close_code"] for row in ends} <= {1005, 1006}, "no close frame came"
    assert "Traceback" not in product.log
