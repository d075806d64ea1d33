"""A full disk under database and results: what is new is refused, what runs goes on when there is room again."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path

from tests.outages.conftest import accepted, converse, create, in_writing, until_accepted, until_over, until_written
from tests.outages.disks import small_disk
from tests.realtime.product import Home, Product
from tests.realtime.talker import call

DISK_MIB = 48
"""SQLite's write-ahead log alone needs some MiB before it is folded back."""
LONG = 40
"""Sentences: some seconds of work."""
PATIENCE_S = 60.0


async def test_a_full_disk_refuses_what_is_new_and_loses_nothing(home: Home, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", DISK_MIB) as disk:
        # No reserve: the disk is filled to its last byte, so that writing itself fails.
        product = Product(
            home,
            disk.folder / "served",
            DISK_RESERVE_BYTES="0",
            TASK_LEASE_S="3",
            RATE_LIMITS="tasks.create=off,tasks.query=off",
        )
        try:
            async with call(product.url, product.keys["good"]) as talker:
                session_id = await in_writing(talker)
                await converse(talker, [1])
                tasks = [await asyncio.to_thread(accepted, product, LONG)]
                await asyncio.to_thread(disk.fill, product)

                deadline = time.monotonic() + PATIENCE_S
                while (refused := await asyncio.to_thread(create, product)).status == 200:
                    tasks.append(str(refused.body["output"]["task_id"]))  # it still fits into the pages that there are
                    assert time.monotonic() < deadline
                assert refused.status == 503, refused
                assert refused.retry_after is not None
                await converse(talker, [2, 3])

                await asyncio.to_thread(disk.clear, product)
                tasks.append(await until_accepted(product))
                await converse(talker, [4])
                await until_over(product, tasks)
            await until_written(product, session_id, 4)
        finally:
            status = product.stop()
        with sqlite3.connect(disk.folder / "served" / "voiceapp.sqlite3") as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert status == 0


async def test_the_reserve_refuses_before_the_disk_is_full(home: Home, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", DISK_MIB) as disk:
        reserve = 2**50 if not disk.is_mounted else 4 * 2**20
        product = Product(
            home, disk.folder / "served", is_ready=False, DISK_RESERVE_BYTES=str(reserve), TASK_ENGINE="worker"
        )
        try:
            if disk.is_mounted:
                assert product.reasons() == []
                await asyncio.to_thread(disk.fill, product)
            async with asyncio.timeout(PATIENCE_S):
                while "disk_full" not in (await asyncio.to_thread(product.reasons) or ()):  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
            refused = await asyncio.to_thread(create, product)
            assert (refused.status, refused.retry_after) == (503, "60"), refused
            assert " ERROR " not in product.log
        finally:
            product.stop()
