"""Who gets through the door: refusals of the handshake are real HTTP answers."""

from __future__ import annotations

import asyncio
import http.cookiejar
import json
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import PATIENCE_S, Talker, call
from voiceapp.accounts.auth import KEY_WANTED


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(MAX_SESSIONS="2", PUBLIC_PAGE="guest")


@pytest.fixture(scope="module")
def page_for_people(serve: Serve) -> Product:
    return serve(PUBLIC_PAGE="login")


@pytest.fixture(scope="module")
def without_page(serve: Serve) -> Product:
    return serve(PUBLIC_PAGE="off")


async def refusal(url: str, key: str | None = None, **options: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers of a refused handshake."""
    with pytest.raises(InvalidStatus) as refused:
        async with call(url, key, **options):
            pass
    response = refused.value.response
    return response.status_code, json.loads(response.body), dict(response.headers.raw_items())


@asynccontextmanager
async def opened(url: str, key: str | None = None, **options: Any) -> AsyncIterator[Talker]:
    """A conversation, as soon as there is a place: who hung up gives it back a little later."""
    async with AsyncExitStack() as opening:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    talker = await opening.enter_async_context(call(url, key, **options))
                    break
                except InvalidStatus as refused:
                    if refused.response.status_code != 429:
                        raise
                await asyncio.sleep(0.05)
        yield talker


def cookie(product: Product) -> str:
    """The Cookie header of somebody on the page."""
    jar = http.cookiejar.CookieJar()
    urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar)).open(
        product.origin + "/voice/config", timeout=20
    ).read()
    return "; ".join(f"{found.name}={found.value}" for found in jar)


def signed_in(product: Product) -> str:
    """The Cookie header of alice."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    login = product.origin + "/login"
    browser.open(login, timeout=20).read()
    token = next(found.value for found in jar if found.name == "csrftoken")
    form = f"username=alice&password=alice-password&csrfmiddlewaretoken={token}".encode()
    browser.open(urllib.request.Request(login, form, {"Referer": login}), timeout=20).read()
    return "; ".join(f"{found.name}={found.value}" for found in jar)


async def test_a_good_key_gets_a_session(product: Product) -> None:
    async with opened(product.url, product.keys["good"]) as talker:
        created = talker.heard[0].event

    assert created["type"] == "session.created"
    assert created["event_id"]
    assert created["session"]["id"].startswith("sess_")
    assert created["session"]["model"] == "voice"
    assert created["session"]["object"] == "realtime.session"


async def test_a_key_may_be_announced_in_any_case_and_the_path_may_end_in_a_slash(product: Product) -> None:
    async with opened(f"{product.url}/", headers={"Authorization": f"bEaReR {product.keys['good']}"}) as talker:
        assert talker.types == ["session.created"]


@pytest.mark.parametrize("key", ["revoked", "expired", None, "sk-nonsense"])
async def test_a_key_that_is_not_valid_is_refused_with_401(product: Product, key: str | None) -> None:
    text = product.keys.get(key, key) if key else None

    status, body, headers = await refusal(product.url, text)

    assert status == 401
    assert body["code"] == "InvalidApiKey"
    assert body["message"] == ("Invalid API-key provided." if key else KEY_WANTED)
    assert body["request_id"] == headers["x-request-id"]
    assert headers["content-type"] == "application/json"


async def test_an_unknown_path_is_refused_with_404(product: Product) -> None:
    status, body, _ = await refusal(f"ws://{product.address}/api-ws/v2/realtime", product.keys["good"])

    assert (status, body["code"]) == (404, "NotFound")


async def test_one_conversation_too_many_is_refused_with_429_until_one_ends(product: Product) -> None:
    async with AsyncExitStack() as open_calls:
        first = await open_calls.enter_async_context(opened(product.url, product.keys["good"]))
        await open_calls.enter_async_context(opened(product.url, product.keys["good"]))

        status, body, headers = await refusal(product.url, product.keys["good"])

        assert (status, body["code"]) == (429, "Throttling.Concurrency")
        assert int(headers["retry-after"]) > 0
        await first.send("session.finish")
        assert await first.wait_closed() == 1000
        await open_calls.enter_async_context(opened(product.url, product.keys["good"]))


async def test_refused_handshakes_take_no_place(product: Product) -> None:
    for _ in range(3):
        await refusal(product.url, product.keys["good"], model="nobody")

    async with opened(product.url, product.keys["good"]), opened(product.url, product.keys["good"]) as talker:
        assert talker.types == ["session.created"]


async def test_the_page_talks_with_its_cookie_from_its_own_origin(product: Product) -> None:
    async with opened(product.page_url, headers={"Cookie": cookie(product)}, origin=product.origin) as talker:
        assert talker.types == ["session.created"]
        session_id = talker.heard[0].event["session"]["id"]

    row = await product.row(
        "select transport, entrance, is_guest from realtime_realtimesession where id = ?", session_id
    )
    assert row == {"transport": "websocket", "entrance": "page", "is_guest": 1}


@pytest.mark.parametrize(
    "origin",
    [
        "https://{address}",
        "http://127.0.0.1:1",
        "http://localhost:{port}",
        "http://127.0.0.1.example.org:{port}",
        "http://evil.example",
        "null",
        None,
    ],
)
async def test_another_origin_is_refused(product: Product, origin: str | None) -> None:
    if origin is not None:
        origin = origin.format(address=product.address, port=product.address.rpartition(":")[2])

    status, body, _ = await refusal(product.page_url, headers={"Cookie": cookie(product)}, origin=origin)

    assert (status, body["code"]) == (403, "AccessDenied")


async def test_a_host_that_is_not_ours_is_refused_even_when_the_origin_agrees(product: Product) -> None:
    status, body, _ = await refusal(
        "ws://evil.example/voice/socket",
        headers={"Cookie": cookie(product)},
        origin="http://evil.example",
        address=product.address,
    )

    assert (status, body["code"]) == (403, "AccessDenied")


async def test_a_page_without_a_cookie_is_refused(product: Product) -> None:
    status, body, _ = await refusal(product.page_url, origin=product.origin)

    assert (status, body["code"]) == (403, "AccessDenied")


async def test_a_key_opens_nothing_on_the_page_s_socket(product: Product) -> None:
    status, _, _ = await refusal(product.page_url, product.keys["good"], origin=product.origin)

    assert status == 403


async def test_people_who_signed_in_talk_in_their_own_name(page_for_people: Product) -> None:
    page = page_for_people

    async with call(page.page_url, headers={"Cookie": signed_in(page)}, origin=page.origin) as talker:
        session_id = talker.heard[0].event["session"]["id"]
        await talker.send("session.finish")
        await talker.wait_closed()

    row = await page.row("select is_guest, user_id from realtime_realtimesession where id = ?", session_id)
    assert row["is_guest"] == 0
    assert row["user_id"] is not None


async def test_a_page_that_is_switched_off_has_no_socket(without_page: Product) -> None:
    status, body, _ = await refusal(without_page.page_url, origin=without_page.origin)

    assert (status, body["code"]) == (404, "NotFound")


async def test_programs_talk_while_the_page_is_switched_off(without_page: Product) -> None:
    async with call(without_page.url, without_page.keys["good"]) as talker:
        assert talker.types == ["session.created"]
