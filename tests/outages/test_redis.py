"""A Redis that is gone for a while: processes count rates alone, and nothing else changes."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from tests.accounts.redis import RedisServer
from tests.outages.conftest import OUTAGE_S, accepted, converse, in_writing, until_over, until_written
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import call

EMBEDDING = {"model": "text-embedding-v4", "input": "A cat sits on the mat."}
EMBEDDINGS = "/compatible-mode/v1/embeddings"
LIMIT = 4
WINDOW_S = 600
"""No call gets older than that within the test, so that exactly `LIMIT` are let through."""


def called(product: Product, times: int) -> list[int]:
    return [product.ask(EMBEDDINGS, EMBEDDING).status for _ in range(times)]


async def test_sessions_tasks_and_limits_outlive_a_redis_that_is_away(serve: Serve) -> None:
    with tempfile.TemporaryDirectory(prefix="redis-", dir="/tmp") as folder:
        redis = RedisServer(Path(folder))
        redis.start()
        product = serve(REDIS_URL=redis.url, RATE_LIMITS=f"embedding={LIMIT}/{WINDOW_S}")
        try:
            async with call(product.url, product.keys["good"]) as talker:
                session_id = await in_writing(talker)
                await converse(talker, [1])
                assert await asyncio.to_thread(called, product, 2) == [200, 200]
                tasks = [await asyncio.to_thread(accepted, product)]

                redis.stop()
                until = time.monotonic() + OUTAGE_S
                assert await asyncio.to_thread(called, product, 3) == [200, 200, 429], "counted on in the process"
                turns = 1
                while time.monotonic() < until or turns < 3:
                    turns += 1
                    await converse(talker, [turns])
                    await asyncio.sleep(0.5)  # nobody talks without a pause
                tasks.append(await asyncio.to_thread(accepted, product))
                redis.start()

                tasks.append(await asyncio.to_thread(accepted, product))
                assert await asyncio.to_thread(called, product, 1) == [429], "what the process counted still counts"
                await converse(talker, [turns + 1])
                await until_over(product, tasks)
            await until_written(product, session_id, turns + 1)
            assert "counting rates in this process alone for a while" in product.log
            assert " ERROR " not in product.log
            assert "Traceback" not in product.log
        finally:
            redis.stop()
