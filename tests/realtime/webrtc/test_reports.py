"""Sessions that are passed on to a service elsewhere: callers report that they are connected, and that they ended."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from tests.realtime.conftest import Serve
from tests.realtime.doors import API, guest
from tests.realtime.product import Product
from tests.realtime.webrtc.test_relayed import FULL, Service
from tests.web import listening_beside
from voiceapp.realtime.forwarding import REPORT_HEADER

GUEST_MINUTES = 10
ENDED = {"state": "ended"}
CONNECTED = {"state": "connected"}
END = "SELECT ended_at, close_code, close_reason FROM realtime_realtimesession WHERE id = ?"


@pytest.fixture(scope="module")
def product(serve: Serve) -> Iterator[Product]:
    """One that passes offers on; an account, and a guest, may have one session open."""
    service = Service()
    with listening_beside(*service.routes) as service.origin:
        yield serve(
            **service.settings,
            PUBLIC_PAGE="guest",
            MAX_SESSIONS_PER_ACCOUNT="1",
            GUEST_SESSIONS_PER_ADDRESS="1",
            GUEST_SESSION_S=str(GUEST_MINUTES * 60),
        )


@asynccontextmanager
async def program(product: Product, key: str = "good") -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {product.keys[key]}"}
    async with aiohttp.ClientSession(product.origin, headers=headers) as client:
        yield client


@asynccontextmanager
async def page(product: Product) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(product.origin, headers=(await guest(product)).sent) as browser:
        yield browser


async def offered(client: aiohttp.ClientSession, sdp: str, path: str) -> tuple[int, str, str]:
    """Status, body and the address of the reports."""
    headers = {"Content-Type": "application/sdp"}
    async with client.post(f"{path}?model=upstream", data=sdp, headers=headers) as response:
        return response.status, await response.text(), response.headers.get(REPORT_HEADER, "")


async def begun(client: aiohttp.ClientSession, sdp: str, path: str = API) -> tuple[str, str]:
    """Begin a session: the address of its reports, and its id."""
    status, body, address = await offered(client, sdp, path)
    assert status == 200, body
    return address, address.rpartition("/")[2].partition(".")[0]


async def refusal(client: aiohttp.ClientSession, sdp: str) -> tuple[int, str]:
    status, body, _ = await offered(client, sdp, API)
    return status, json.loads(body)["code"]


async def report(client: aiohttp.ClientSession, address: str, body: object, **headers: str) -> int:
    async with client.post(address, json=body, headers=headers) as response:
        return response.status


async def test_a_program_that_reports_the_end_has_its_place_back_at_once(product: Product, offer: str) -> None:
    async with program(product) as client:
        address, session_id = await begun(client, offer)
        assert await report(client, address, CONNECTED) == 204
        assert await refusal(client, offer) == FULL
        assert await report(client, address, {**ENDED, "code": 1006}) == 204
        assert product.rows(END, session_id)[0]["close_code"] == 1006
        first = product.rows(END, session_id)

        assert [await report(client, address, ENDED) for _ in range(2)] == [204, 204]
        assert await report(client, address, CONNECTED) == 404
        assert product.rows(END, session_id) == first
        again, _ = await begun(client, offer)
        assert await report(client, again, ENDED) == 204


async def test_only_the_key_that_began_a_session_can_end_it(product: Product, offer: str) -> None:
    async with program(product) as client, program(product, "doomed") as other:
        address, session_id = await begun(client, offer)
        assert await report(other, address, ENDED) == 404
        assert await report(client, address[:-1] + "-", ENDED) == 404
        assert product.rows(END, session_id)[0]["ended_at"] is None
        assert await report(client, address, ENDED) == 204


async def test_only_the_page_that_began_a_session_can_end_it(product: Product, offer: str) -> None:
    async with page(product) as browser, page(product) as other:
        address, session_id = await begun(browser, offer, "/voice/webrtc")
        assert address.startswith("/voice/sessions/")
        assert await report(other, address, ENDED) == 404
        assert await report(browser, address, ENDED, Origin="https://elsewhere.example") == 403
        assert product.rows(END, session_id)[0]["ended_at"] is None
        assert await report(browser, address, CONNECTED) == 204
        assert await report(browser, address, {**ENDED, "code": 1001}) == 204
        assert product.rows(END, session_id)[0]["close_code"] == 1001
        later, _ = await begun(browser, offer, "/voice/webrtc")
        assert await report(browser, later, ENDED) == 204


async def test_a_call_that_lasts_too_long_is_over(product: Product, offer: str) -> None:
    def begin_earlier(session_id: str, minutes: int) -> None:
        at = datetime.now(UTC) - timedelta(minutes=minutes)
        changed = "UPDATE realtime_realtimesession SET started_at = ? WHERE id = ?"
        product.write(changed, at.strftime("%Y-%m-%d %H:%M:%S.%f"), session_id)

    async with program(product) as client, page(product) as browser:
        for who, path, longest in (
            (client, API, 120),
            (browser, "/voice/webrtc", GUEST_MINUTES),
        ):
            address, session_id = await begun(who, offer, path)
            begin_earlier(session_id, longest - 1)
            assert await report(who, address, CONNECTED) == 204
            begin_earlier(session_id, longest + 1)
            assert await report(who, address, CONNECTED) == 404
            assert product.rows(END, session_id)[0]["close_code"] == 4000
            again, _ = await begun(who, offer, path)  # its place is free
            assert await report(who, again, ENDED) == 204


@pytest.mark.parametrize("body", [[], {}, {"state": "dancing"}, {**ENDED, "code": 12}, {**ENDED, "code": "1000"}])
async def test_what_is_no_report_is_refused(product: Product, offer: str, body: object) -> None:
    async with program(product) as client, page(product) as browser:
        assert await report(client, "/api/v1/webrtc/sessions/x", body) == 400
        assert await report(browser, "/voice/sessions/x", body) == 400
