"""The seat of a session in the running server: given back when the session ends, whatever is still written of it."""

from __future__ import annotations

import asyncio

import pytest
from websockets.exceptions import InvalidStatus

from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import call

ONE_AFTER_THE_OTHER = 40
ROUNDS = 5


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(MAX_SESSIONS_PER_ACCOUNT="1")


@pytest.fixture(scope="module")
def beside(product: Product, serve: Serve) -> Product:
    """Another process of the same installation."""
    return serve(MAX_SESSIONS_PER_ACCOUNT="1", DATABASE_URL=product.environment["DATABASE_URL"])


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
