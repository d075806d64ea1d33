"""SIGTERM under load, and a new process in the place of an old one: every conversation is told, none is refused."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from tests.realtime.product import Home, Product
from tests.realtime.talker import Talker, call

CONVERSATIONS = 50
SPEAKING = 5
"""Of them, in the middle of a reply when the server is stopped."""
STOPPED_S = 25.0
"""Promised for the defaults: DRAIN_S, and what comes after it. Here the drain is shorter."""
ROOM: dict[str, Any] = {"MAX_SESSIONS": "100", "MAX_SESSIONS_PER_ACCOUNT": "100", "MAX_CONNECTIONS_PER_ADDRESS": "400"}
LONG_QUESTION = "What can you do?"


@pytest.fixture
def starting(home: Home, tmp_path: Path) -> Iterator[list[Product]]:
    """Products put in here are stopped after the test."""
    running: list[Product] = []
    yield running
    for product in running:
        product.stop()


async def answered(talker: Talker) -> None:
    await talker.send("session.update", session={"modalities": ["text"]})
    await talker.ask("What is two plus two?")
    await talker.wait("response.done", timeout_s=60)


async def test_fifty_conversations_are_told_and_written_before_the_process_ends(
    home: Home, tmp_path: Path, starting: list[Product]
) -> None:
    product = Product(home, tmp_path / "served", DRAIN_S="3", **ROOM)
    starting.append(product)
    async with AsyncExitStack() as open_:
        talkers = await asyncio.gather(
            *(open_.enter_async_context(call(product.url, product.keys["good"])) for _ in range(CONVERSATIONS))
        )
        await asyncio.gather(*(answered(talker) for talker in talkers))
        for talker in talkers[:SPEAKING]:
            await talker.ask(LONG_QUESTION, modalities=["audio", "text"])
        await asyncio.gather(*(talker.wait("response.audio.delta", timeout_s=60) for talker in talkers[:SPEAKING]))

        product.signal()
        stopped_at = time.monotonic()
        await asyncio.gather(*(talker.wait("session.closing") for talker in talkers))
        product.signal()  # hosts repeat themselves
        codes = await asyncio.gather(*(talker.wait_closed() for talker in talkers))
        status = await asyncio.to_thread(product.stop)
        took_s = time.monotonic() - stopped_at

    assert codes == [4012] * CONVERSATIONS
    assert {event["code"] for talker in talkers for event in talker.all("session.closing")} == {4012}
    assert all(len(talker.all("session.closing")) == 1 for talker in talkers)
    assert (status, took_s < STOPPED_S) == (0, True), took_s
    assert "Traceback" not in product.log
    assert " ERROR " not in product.log
    assert "Stopped" in product.log

    rows = product.rows("SELECT close_code, turn_count FROM realtime_realtimesession WHERE ended_at IS NOT NULL")
    assert sorted((row["close_code"], row["turn_count"]) for row in rows) == sorted(
        [(4012, 2)] * SPEAKING + [(4012, 1)] * (CONVERSATIONS - SPEAKING)
    )
    turns = {f"{row['session_id']}:{row['ordinal']}" for row in product.rows("SELECT * FROM realtime_turn")}
    billed = {row["request_id"] for row in product.rows("SELECT * FROM accounts_usagerecord")}
    assert len(turns) == CONVERSATIONS + SPEAKING
    assert billed == turns


async def test_conversations_go_on_until_they_end_where_the_drain_is_long(
    home: Home, tmp_path: Path, starting: list[Product]
) -> None:
    product = Product(home, tmp_path / "served", DRAIN_S="600")
    starting.append(product)
    async with call(product.url, product.keys["good"]) as talker:
        product.signal()
        await product.logged("Stopping: 1 being served")
        with pytest.raises(InvalidStatus, match="503"):
            await converse(product)
        await answered(talker)
        assert not talker.all("session.closing")
        await talker.send("session.finish")
        assert await talker.wait_closed() == 1000
    assert await asyncio.to_thread(product.wait) == 0


async def converse(product: Product) -> int:
    """A whole conversation of one question, on a connection of its own; returns its close code."""
    async with call(product.url, product.keys["good"]) as talker:
        await talker.send("session.update", session={"modalities": ["text"]})
        await talker.ask("What is two plus two?")
        await talker.send("session.finish")
        code = await talker.wait_closed()
        assert code is not None
        return code


def read(product: Product) -> int:
    with urllib.request.urlopen(f"{product.origin}/voice/config", timeout=30) as response:
        assert json.load(response)["models"]
        return int(response.status)


async def test_a_new_process_takes_over_from_an_old_one_without_a_session_refused(
    home: Home, tmp_path: Path, starting: list[Product]
) -> None:
    """Both listen on one port (`--share-port`); the old one is told to stop while sessions go on coming."""
    sharing: dict[str, Any] = {"arguments": ("--share-port",), "DRAIN_S": "20", **ROOM}
    old = Product(home, tmp_path / "old", **sharing)
    starting.append(old)
    new = await asyncio.to_thread(
        Product,
        home,
        tmp_path / "new",
        **sharing,
        port=int(old.address.rpartition(":")[2]),
        DATABASE_URL=old.environment["DATABASE_URL"],
    )
    starting.append(new)
    codes: list[int] = []
    reads: list[int] = []
    is_over = asyncio.Event()

    async def keep_conversing() -> None:
        while not is_over.is_set():
            codes.append(await converse(old))

    async def keep_reading() -> None:
        while not is_over.is_set():
            reads.append(await asyncio.to_thread(read, old))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(6):
            tasks.create_task(keep_conversing())
        tasks.create_task(keep_reading())
        async with asyncio.timeout(60):
            served_by = "SELECT DISTINCT served_by FROM realtime_realtimesession"
            while len(old.rows(served_by)) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            before = len(codes)
            old.signal()
            assert await asyncio.to_thread(old.stop) == 0
            after = len(codes)
            while len(codes) < after + 20:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        is_over.set()

    assert after > before, "sessions began and ended while the old process stopped"
    assert set(codes) <= {1000, 4012}, "those that the old process still held were told to come again"
    assert codes[after + 6 :] == [1000] * len(codes[after + 6 :])
    assert set(reads) == {200}
    for product in (old, new):
        assert "Traceback" not in product.log
        assert " ERROR " not in product.log
