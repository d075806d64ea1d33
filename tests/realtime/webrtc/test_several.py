"""Two server processes share a port, a range of media ports and a database; calls go on in both."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from contextlib import AsyncExitStack, suppress

import pytest

from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import call
from tests.realtime.webrtc.caller import Caller, calling, post_offer

PORTS = "42600-42699"
CALLS = 24
"""The system deals connections out as it likes; that all of so many go to one process happens once in 2^23 times."""
MOST = {"MAX_SESSIONS_PER_ACCOUNT": str(CALLS), "TASK_LEASE_S": "8"}
SHARING = ("--share-port",)
ROW = "select served_by, ended_at, close_code from realtime_realtimesession where id = ?"


@pytest.fixture(scope="module")
def both(serve: Serve) -> tuple[Product, Product]:
    first = serve(arguments=SHARING, RTC_PORT_RANGE=PORTS, **MOST)
    second = serve(
        port=int(first.address.rpartition(":")[2]),
        arguments=SHARING,
        RTC_PORT_RANGE=PORTS,
        DATABASE_URL=first.environment["DATABASE_URL"],
        **MOST,
    )
    return first, second


def session_of(caller: Caller) -> str:
    return str(caller.all("session.created")[0]["session"]["id"])


def answers_200(origin: str) -> bool:
    with suppress(urllib.error.URLError), urllib.request.urlopen(f"{origin}/readyz", timeout=5) as answer:
        return bool(answer.status == 200)
    return False


async def all_ready(product: Product) -> None:
    """Until whoever is asked is ready; which of the two it is, the system decides."""
    async with asyncio.timeout(60):
        in_a_row = 0
        while in_a_row < CALLS:
            in_a_row = in_a_row + 1 if await asyncio.to_thread(answers_200, product.origin) else 0


async def answered(caller: Caller, question: str, count: int) -> str:
    await caller.ask(question)
    done = await caller.wait("response.done", count=count)
    assert done["response"]["status"] == "completed"
    return str(caller.all("response.audio_transcript.done")[-1]["transcript"])


async def all_over(product: Product) -> None:
    async with asyncio.timeout(20):
        while product.rows("select id from realtime_realtimesession where ended_at is null"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_an_account_s_calls_are_counted_over_both(both: tuple[Product, Product]) -> None:
    """Whichever process is asked: neither holds them all."""
    product, _ = both
    await all_ready(product)
    async with AsyncExitStack() as calls:
        for _ in range(CALLS):  # over WebSocket: so many peers in one process would starve each other
            talker = await calls.enter_async_context(call(product.url, product.keys["good"]))
            await product.row(ROW, talker.heard[0].event["session"]["id"])
        status, body, _ = await post_offer(product.origin, product.keys["good"], "v=0\r\n")
    assert status == 429, body
    await all_over(product)


async def test_calls_go_on_in_both_and_a_crash_ends_only_its_own(both: tuple[Product, Product]) -> None:
    first, second = both
    await all_ready(first)
    async with AsyncExitStack() as calls:
        held: dict[int, Caller] = {}
        for _ in range(CALLS):
            caller = await calls.enter_async_context(calling(first.origin, first.keys["good"]))
            await caller.wait("session.created")
            row = await first.row(ROW, session_of(caller))
            held[int(row["served_by"].split(":")[1])] = caller
            if len(held) == 2:
                break
        assert set(held) == {first.pid, second.pid}
        staying, falling = held[first.pid], held[second.pid]

        said = await asyncio.gather(
            answered(staying, "What is two plus two?", 1), answered(falling, "What is three plus four?", 1)
        )
        assert "4" in said[0]
        assert "7" in said[1]

        second.kill()
        assert "9" in await answered(staying, "What is four plus five?", 2)
        assert first.rows(ROW, session_of(falling))[0]["ended_at"] is None

        await asyncio.to_thread(second.start)  # who does not answer for seconds is missed
        await all_ready(first)
        fallen = await first.row(f"{ROW} and ended_at is not null", session_of(falling))
        assert fallen["close_code"] == 1006
        assert first.rows(ROW, session_of(staying))[0]["ended_at"] is None
        assert "11" in await answered(staying, "What is five plus six?", 3)


def test_a_port_that_is_not_shared_is_taken(both: tuple[Product, Product], serve: Serve) -> None:
    with pytest.raises(AssertionError, match="Cannot listen on"):
        serve(port=int(both[0].address.rpartition(":")[2]))
