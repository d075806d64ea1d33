"""Calls that are passed on to a service elsewhere: this server does not see their end, and limits them all the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.realtime.conftest import Serve
from tests.realtime.doors import api_offer, guest, page_offer, program
from tests.realtime.product import Product
from tests.web import listening

ANSWER = "v=0\r\no=- 3 4 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
FULL = (429, "Throttling.Concurrency")
HELD_S = "10"
SOON_S = 20.0


class Service:
    """The service elsewhere: takes every offer, or none."""

    def __init__(self) -> None:
        self.origin = ""
        self.offers = 0
        self.form: dict[str, Any] = {}
        self.is_down = False
        self.routes = web.post("/api/v1/webrtc/realtime", self._answer), web.post("/v1/realtime/calls", self._begin)

    async def _answer(self, request: web.Request) -> web.Response:
        self.offers += 1
        if self.is_down:
            return web.Response(status=500)
        return web.Response(text=ANSWER, content_type="application/sdp")

    async def _begin(self, request: web.Request) -> web.Response:
        self.offers += 1
        self.form = dict(await request.post())
        return web.Response(status=201, text=ANSWER, content_type="application/sdp", headers={"Location": "/v1/call"})

    @property
    def settings(self) -> dict[str, str]:
        """Of the server that passes offers on to it."""
        return {"UPSTREAM_BASE_URL": self.origin, "UPSTREAM_API_KEY": "secret", "UPSTREAM_MEDIA": "direct"}


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    async with listening(*service.routes) as service.origin:
        yield service


Begin = Callable[[Product, str], Awaitable[tuple[int, str]]]


async def by_key(product: Product, offer: str) -> tuple[int, str]:
    """Status and, of a refusal, the code."""
    return (await api_offer(product, program(product.keys["good"]), "upstream", offer))[:2]


async def by_guest(product: Product, offer: str) -> tuple[int, str]:
    """Every time as somebody with a fresh browser, from the same address."""
    return (await page_offer(product, await guest(product), "upstream", offer))[:2]


async def with_a_place(begin: Begin, product: Product, offer: str) -> tuple[int, str]:
    """What becomes of an offer as soon as a place is free."""
    async with asyncio.timeout(SOON_S):
        while True:
            if (found := await begin(product, offer)) != FULL:
                return found
            await asyncio.sleep(0.2)


async def test_a_call_holds_a_place_for_a_while(serve: Serve, service: Service, offer: str) -> None:
    product = serve(**service.settings, MAX_SESSIONS_PER_ACCOUNT="2", SESSION_LIFETIME_S=HELD_S)
    assert [await by_key(product, offer) for _ in range(3)] == [(200, ""), (200, ""), FULL]
    assert service.offers == 2
    assert await with_a_place(by_key, product, offer) == (200, "")
    assert service.offers == 3


async def test_a_call_that_the_service_refuses_holds_none(serve: Serve, service: Service, offer: str) -> None:
    product = serve(**service.settings, MAX_SESSIONS_PER_ACCOUNT="1")
    service.is_down = True
    assert [(await by_key(product, offer))[0] for _ in range(2)] == [503, 503]
    service.is_down = False
    assert [await by_key(product, offer) for _ in range(2)] == [(200, ""), FULL]


async def test_guests_begin_so_many_at_once_and_in_an_hour(serve: Serve, service: Service, offer: str) -> None:
    product = serve(
        **service.settings,
        PUBLIC_PAGE="guest",
        GUEST_SESSIONS_PER_ADDRESS="2",
        GUEST_SESSIONS_PER_HOUR="3",
        GUEST_SESSION_S=HELD_S,
    )
    assert [await by_guest(product, offer) for _ in range(3)] == [(200, ""), (200, ""), FULL]
    assert await with_a_place(by_guest, product, offer) == (200, "")
    assert await with_a_place(by_guest, product, offer) == (429, "Throttling.RateQuota")
    assert service.offers == 3


async def test_a_call_is_charged_as_one_and_a_budget_for_two_lets_two_begin(
    serve: Serve, service: Service, offer: str
) -> None:
    product = serve(**service.settings, LEDGER_PRICES=json.dumps({"realtime": {"conversations": 500}}))
    product.write("update accounts_apikey set monthly_budget_nano = 1000 where name = 'good'")

    found = [await by_key(product, offer) for _ in range(3)]

    assert found == [(200, ""), (200, ""), (403, "AccessDenied")]
    assert service.offers == 2
    lines = product.rows("select operation, unit, quantity, cost_nano from accounts_usagerecord")
    assert lines == [{"operation": "realtime", "unit": "conversations", "quantity": 1, "cost_nano": 500}] * 2
    assert product.rows("select spent_nano from accounts_monthlyspend") == [{"spent_nano": 1000}]


async def test_a_call_in_openais_dialect_goes_to_a_service_that_speaks_it(
    serve: Serve, service: Service, offer: str
) -> None:
    """A caller who speaks ours would not understand that service, which here takes nothing but calls."""
    address = {"UPSTREAM_BASE_URL": f"{service.origin}/v1", "UPSTREAM_REALTIME_MODEL": "gpt-realtime"}
    product = serve(**{**service.settings, **address}, UPSTREAM_DIALECT="openai", RESUME_GRACE_S="0")
    session = {"model": "upstream", "instructions": "Be kind.", "echo_cancellation": "on"}
    form = aiohttp.FormData({"sdp": offer, "session": json.dumps(session)}, default_to_multipart=True)
    headers = {"Authorization": f"Bearer {product.keys['good']}"}
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.post(f"{product.origin}/v1/realtime/calls", data=form) as answer,
    ):
        assert (answer.status, await answer.text()) == (201, ANSWER)
        assert answer.headers["Location"].startswith("/v1/realtime/calls/sess_")
        assert "X-Session-Report" in answer.headers
    there = json.loads(service.form["session"])
    assert there == {"type": "realtime", "model": "gpt-realtime", "instructions": "Be kind."}
    assert service.form["sdp"].startswith(b"v=0")
    assert (await product.row("SELECT transport FROM realtime_realtimesession")) == {"transport": "relayed"}
    assert await by_key(product, offer) == (404, "ModelNotFound")
    assert service.offers == 1
