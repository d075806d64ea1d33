"""Offers that are answered and never connected: bounded, and in nobody's way."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import PATIENCE_S, call
from tests.realtime.webrtc.caller import calling, post_offer
from tests.realtime.webrtc.test_ends import media_sockets
from voiceapp.accounts.auth import Caller
from voiceapp.errors import Throttled
from voiceapp.realtime.webrtc.pending import CONNECTING_S, PendingOffer, PendingOffers

FLOOD = 40
HERE, THERE, ELSEWHERE, NOWHERE = "198.51.100.7", "203.0.113.9", "198.51.100.77", "203.0.113.99"


class TimedOffers:
    def __init__(self, *, total: int = 100, per_account: int = 6, per_address: int = 3) -> None:
        self.now = 100.0
        self.offers = PendingOffers(
            total=total, per_account=per_account, per_address=per_address, clock=lambda: self.now
        )

    def add(self, account_id: int, address: str) -> PendingOffer:
        self.now += 0.001
        caller = Caller(account_id, workspace_id=1, key_id=1, user_id=None, is_guest=False, label="")
        return self.offers.add(caller, address)


def dropped(offers: list[PendingOffer]) -> list[int]:
    return [number for number, offer in enumerate(offers) if offer.dropped.is_set()]


def test_the_oldest_offer_of_an_address_makes_way_when_its_caller_had_time_to_connect() -> None:
    clock = TimedOffers()
    offers = [clock.add(1, HERE) for _ in range(3)]
    with pytest.raises(Throttled, match="3 offers from this address") as refused:
        clock.add(1, HERE)
    assert refused.value.code == "Throttling.Concurrency"
    clock.now += CONNECTING_S
    offers.append(clock.add(1, HERE))
    assert dropped(offers) == [0]
    assert len(clock.offers) == 3


def test_an_offer_that_is_connected_makes_room() -> None:
    clock = TimedOffers()
    first, *_ = [clock.add(1, HERE) for _ in range(3)]
    clock.offers.remove(first)
    clock.offers.remove(first)
    clock.add(1, HERE)
    assert not first.dropped.is_set()


def test_within_an_account_those_make_way_who_have_most() -> None:
    clock = TimedOffers(per_account=5)
    flood = [clock.add(1, HERE) for _ in range(3)]
    others = [clock.add(1, f"203.0.113.{number}") for number in range(3)]
    assert (dropped(flood), dropped(others)) == ([0], [])
    others += [clock.add(1, f"203.0.113.{number}") for number in (3, 4, 5)]
    assert (dropped(flood), dropped(others)) == ([0, 1, 2], [0])


def test_within_the_process_those_accounts_make_way_that_have_most() -> None:
    clock = TimedOffers(total=6)
    flood = [clock.add(1, f"203.0.113.{number}") for number in (1, 2, 3, 3)]
    others = [clock.add(account_id, HERE) for account_id in (2, 3, 4, 5)]
    assert (dropped(flood), dropped(others)) == ([0, 2], [])


def test_the_addresses_of_one_network_count_together() -> None:
    clock = TimedOffers(per_address=1)
    clock.add(1, "2001:db8::1")
    with pytest.raises(Throttled):
        clock.add(1, "2001:db8::2")
    clock.add(1, "2001:db8:0:1::1")


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    """Few seats, fewer offers, behind a proxy that tells where they come from, and a service that is not there."""
    return serve(
        TRUST_PROXY="1",
        MAX_SESSIONS="3",
        MAX_SESSIONS_PER_ACCOUNT="2",
        MAX_PENDING_OFFERS_PER_ADDRESS="4",
        UPSTREAM_BASE_URL="http://127.0.0.1:9",
        UPSTREAM_REALTIME_MODEL="theirs",
    )


async def post(product: Product, offer: str, *, address: str, model: str = "voice") -> tuple[int, str, Any]:
    forwarded = {"X-Forwarded-For": address}
    return await post_offer(product.origin, product.keys["good"], offer, model=model, **forwarded)


async def test_a_flood_from_one_address_locks_nobody_of_the_account_out(product: Product, offer: str) -> None:
    flood = await asyncio.gather(*(post(product, offer, address=HERE) for _ in range(FLOOD)))
    assert sorted(status for status, _, _ in flood) == [200] * 4 + [429] * (FLOOD - 4)

    async with (
        call(product.url, product.keys["good"]),
        calling(product.origin, None, post=partial(post, product, address=THERE)) as caller,
    ):
        await caller.send("input_audio_buffer.clear")
        await caller.wait("input_audio_buffer.cleared")
        await asyncio.gather(*(post(product, offer, address=HERE) for _ in range(FLOOD)))
        await caller.send("input_audio_buffer.clear")
        await caller.wait("input_audio_buffer.cleared", count=2)


async def test_no_service_is_dialled_for_an_offer_that_has_to_wait(product: Product, offer: str) -> None:
    """Nobody would answer there."""
    flood = await asyncio.gather(*(post(product, offer, address=ELSEWHERE) for _ in range(5)))
    assert sorted(status for status, _, _ in flood) == [200] * 4 + [429]
    assert (await post(product, offer, address=ELSEWHERE, model="upstream"))[0] == 429
    assert (await post(product, offer, address=NOWHERE, model="upstream"))[0] == 503


async def test_an_offer_takes_its_seat_when_its_caller_connects(product: Product) -> None:
    async with AsyncExitStack() as calls:

        async def post_and_lose_the_seats(offer: str) -> tuple[int, str, Any]:
            answer = await post(product, offer, address=THERE)
            for _ in range(2):
                await calls.enter_async_context(call(product.url, product.keys["good"]))
            return answer

        late = calling(product.origin, None, post=post_and_lose_the_seats, awaits="session.closing")
        caller = await calls.enter_async_context(late)
        await caller.wait_closed()
    assert caller.types == ["error", "session.closing"]
    assert caller.all("error")[0]["error"]["code"] == "Throttling.Concurrency"
    assert caller.all("session.closing")[0]["code"] == 4429


async def test_an_offer_that_makes_way_leaves_nothing_behind(serve: Serve, offer: str) -> None:
    product = serve(TRUST_PROXY="1", MAX_PENDING_OFFERS_PER_ADDRESS="2", RTC_CONNECT_S="600")
    for _ in range(2):
        assert (await post(product, offer, address=HERE))[0] == 200
    of_two = media_sockets(product)
    async with asyncio.timeout(PATIENCE_S):  # until the older one has had its time
        while (await post(product, offer, address=HERE))[0] != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await product.logged("offer dropped")
    async with asyncio.timeout(PATIENCE_S):
        while media_sockets(product) != of_two:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert product.rows("select * from realtime_realtimesession") == []


async def test_an_offer_that_is_never_connected_is_given_up(serve: Serve, offer: str) -> None:
    product = serve(RTC_CONNECT_S="1")
    assert (await post(product, offer, address=HERE))[0] == 200
    row = await product.row("select * from realtime_realtimesession where ended_at is not null")
    assert (row["close_code"], row["close_reason"]) == (1006, "The connection was not established.")
    async with asyncio.timeout(PATIENCE_S):
        while media_sockets(product):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
