"""A bad network between two installations of this product, one of which serves the other's realtime model.

The caller is told once what was lost, and goes on in a new session there; what is only slow takes its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator

import pytest

from tests.bench.serving import process_cost
from tests.outages.conftest import converse
from tests.outages.faults import FaultProxy, Faults
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import Talker, call
from tests.thorough import usually

MODEL = "upstream"
QUESTION = "Tell me about the manual."
NARROW = 10_000
RENEWED_S = 60.0
"""A connection that falls silent is noticed within 45 s."""
STILL_S = 3.0
"""A caller who can send nothing for so long is held up."""
MOST_AHEAD_BYTES = 24_000_000
"""What the buffers of all the connections on the way hold, with room to spare."""
MOST_HELD_MB = 48.0


@pytest.fixture(scope="module")
def theirs(serve: Serve) -> Product:
    return serve()


@pytest.fixture(scope="module")
def way(theirs: Product) -> Iterator[FaultProxy]:
    proxy = FaultProxy(theirs.port)
    yield proxy
    proxy.close()


@pytest.fixture(scope="module")
def ours(theirs: Product, way: FaultProxy, serve: Serve) -> Product:
    return serve(
        UPSTREAM_BASE_URL=f"http://127.0.0.1:{way.port}",
        UPSTREAM_API_KEY=theirs.keys["good"],
        UPSTREAM_REALTIME_MODEL="voice",
    )


@pytest.fixture(autouse=True)
def _mended(way: FaultProxy) -> Iterator[None]:
    """The network is good again after each test."""
    yield
    way.faults = Faults()


@pytest.mark.parametrize("how", usually("half open", more=("cut",)))
async def test_a_caller_is_told_once_of_a_lost_reply_and_goes_on(ours: Product, way: FaultProxy, how: str) -> None:
    async with call(ours.url, ours.keys["good"], model=MODEL) as talker:
        await talker.ask(QUESTION)
        await talker.wait("response.audio.delta")
        if how == "cut":
            way.cut()
        else:
            way.faults = Faults(is_half_open=True)
        done = await talker.wait("response.done", timeout_s=RENEWED_S)
        assert done["response"]["status"] == "failed"
        way.faults = Faults()
        await converse(talker, [2])
        (error,) = talker.all("error")
        assert error["error"]["code"] == "upstream_connection_lost"
        assert len(talker.all("session.created")) == 1
        await talker.send("session.finish")
        assert await talker.wait_closed() == 1000


async def test_a_narrow_way_holds_the_caller_up_and_costs_little_memory(ours: Product, way: FaultProxy) -> None:
    async with call(ours.url, ours.keys["good"], model=MODEL) as talker:
        before_mb = process_cost(ours.pid).rss_mb
        way.faults = Faults(bytes_per_s=NARROW)
        assert await _taken(talker) < MOST_AHEAD_BYTES
        assert process_cost(ours.pid).rss_mb - before_mb < MOST_HELD_MB
    way.faults = Faults()
    async with call(ours.url, ours.keys["good"], model=MODEL) as talker:
        await converse(talker, [1])


async def _taken(talker: Talker) -> int:
    """How much of a caller's is taken until they have to wait, or are turned away."""
    text = json.dumps({"type": "input_image_buffer.append", "image": "x" * 200_000})
    taken = 0
    with contextlib.suppress(TimeoutError):
        while taken < 2 * MOST_AHEAD_BYTES and not talker.is_closed:
            async with asyncio.timeout(STILL_S):
                await talker.socket.send(text)
            taken += len(text)
    return taken
