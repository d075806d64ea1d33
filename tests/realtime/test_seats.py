"""The seat of a session in the running server: given back when the session ends, whatever is still written of it."""

from __future__ import annotations

import asyncio

import pytest
from websockets.exceptions import InvalidStatus

from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import call
from tests.thorough import usually

ONE_AFTER_THE_OTHER = 40
ROUNDS = 5
LEASE_S = "8"
KILLED_S = 60.0


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(MAX_SESSIONS_PER_ACCOUNT="1", TASK_LEASE_S=LEASE_S)


@pytest.fixture(scope="module")
def beside(product: Product, serve: Serve) -> Product:
    """Another process of the same installation."""
    return serve(MAX_SESSIONS_PER_ACCOUNT="1", TASK_LEASE_S=LEASE_S, DATABASE_URL=product.environment["DATABASE_URL"])


async def held_and_finished(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.send("session.finish")
        assert await talker.wait_closed() == 1000


async def test_a_caller_may_hold_one_conversation_after_another(product: Product) -> None:
    """With one seat, and no time between them."""
    for _ in range(ONE_AFTER_THE_OTHER):
        await held_and_finished(product)
    counted = "select count(*) as number from realtime_realtimesession where close_code = 1000 having count(*) = ?"
    assert await product.row(counted, ONE_AFTER_THE_OTHER), "every one of them is written down"


async def test_of_two_who_ask_two_processes_at_once_for_the_last_seat_one_gets_it(
    product: Product, beside: Product
) -> None:
    async def admitted(at: Product, both_asked: asyncio.Barrier) -> bool:
        try:
            async with call(at.url, at.keys["good"]):
                await both_asked.wait()
                return True
        except InvalidStatus as refused:
            await both_asked.wait()
            return refused.response.status_code != 429

    for _ in range(ROUNDS):
        both_asked = asyncio.Barrier(2)
        assert sorted(await asyncio.gather(admitted(product, both_asked), admitted(beside, both_asked))) == [
            False,
            True,
        ]


async def test_what_a_killed_process_held_is_closed_by_the_others_when_its_lease_is_over(
    product: Product, beside: Product
) -> None:
    for killed, other in usually((product, beside), more=((beside, product),)):
        async with call(killed.url, killed.keys["good"]) as talker:
            session_id = talker.all("session.created")[0]["session"]["id"]
            await product.row("select 1 from realtime_realtimesession where id = ?", session_id)
            killed.kill()
        with pytest.raises(InvalidStatus):
            async with call(other.url, other.keys["good"]):
                pass
        ended = "select 1 from realtime_realtimesession where id = ? and close_code = 1006"
        await product.row(ended, session_id, within_s=KILLED_S)
        await held_and_finished(other)
        killed.start()
