"""Open conversations of the page end when the person signs out, or may not talk any more."""

from __future__ import annotations

import asyncio
import http.cookiejar
import time
import urllib.request

import pytest

from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import call
from tests.realtime.webrtc.caller import calling

PROMPT_S = 15.0
"""Credentials are looked at every two seconds; a busy machine takes its time."""


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(PUBLIC_PAGE="guest")


class Visitor:
    """Somebody with a browser."""

    def __init__(self, product: Product) -> None:
        self._origin = product.origin
        self._jar = http.cookiejar.CookieJar()
        self._browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))
        self._fetch("/voice/config")
        self._fetch("/login")

    @property
    def cookies(self) -> str:
        return "; ".join(f"{found.name}={found.value}" for found in self._jar)

    def sign_in(self) -> None:
        self._fetch("/login", "username=alice&password=alice-password")

    def sign_out(self) -> None:
        self._fetch("/logout", "")

    async def offer(self, offer: str) -> tuple[int, str, None]:
        """Begin a call as the page does."""
        headers = {"Content-Type": "application/sdp", "X-CSRFToken": self._token}
        return 200, await asyncio.to_thread(self._post, "/voice/webrtc?model=voice", offer, headers), None

    @property
    def _token(self) -> str:
        return next(str(found.value) for found in self._jar if found.name == "csrftoken")

    def _fetch(self, path: str, form: str | None = None) -> None:
        if form is None:
            self._browser.open(self._origin + path, timeout=20).read()
        else:
            self._post(path, f"{form}&csrfmiddlewaretoken={self._token}", {})

    def _post(self, path: str, body: str, headers: dict[str, str]) -> str:
        sent = {"Origin": self._origin, "Referer": self._origin + path, **headers}
        request = urllib.request.Request(self._origin + path, body.encode(), sent)
        with self._browser.open(request, timeout=20) as answer:
            return str(answer.read().decode())


async def test_signing_out_ends_the_open_conversation_and_no_other(product: Product) -> None:
    here, there = Visitor(product), Visitor(product)
    for visitor in (here, there):
        await asyncio.to_thread(visitor.sign_in)
    async with (
        call(product.page_url, headers={"Cookie": here.cookies}, origin=product.origin) as talker,
        call(product.page_url, headers={"Cookie": there.cookies}, origin=product.origin) as other,
        call(product.url, product.keys["good"]) as program,
    ):
        gone = time.monotonic()
        await asyncio.to_thread(here.sign_out)
        assert await talker.wait_closed() == 4401
        assert time.monotonic() - gone < PROMPT_S
        assert talker.all("error")[0]["error"]["code"] == "signed_out"
        for one in (other, program):
            await one.send("input_audio_buffer.clear")
            await one.wait("input_audio_buffer.cleared")


async def test_signing_out_ends_the_call(product: Product) -> None:
    visitor = Visitor(product)
    await asyncio.to_thread(visitor.sign_in)
    async with calling(product.origin, None, post=visitor.offer) as caller:
        gone = time.monotonic()
        await asyncio.to_thread(visitor.sign_out)
        assert (await caller.wait("session.closing"))["code"] == 4401
        await caller.wait_closed()
        assert time.monotonic() - gone < PROMPT_S


@pytest.mark.parametrize(
    ("is_guest", "table", "name"),
    [(True, "accounts_account", "Guests"), (False, "accounts_account", "Acme"), (False, "auth_user", "alice")],
)
async def test_who_is_switched_off_is_cut_off(product: Product, is_guest: bool, table: str, name: str) -> None:
    visitor = Visitor(product)
    if not is_guest:
        await asyncio.to_thread(visitor.sign_in)
    column = "username" if table == "auth_user" else "name"
    async with call(product.page_url, headers={"Cookie": visitor.cookies}, origin=product.origin) as talker:
        session_id = talker.heard[0].event["session"]["id"]
        product.write(f"update {table} set is_active = 0 where {column} = ?", name)
        gone = time.monotonic()
        assert await talker.wait_closed() == 4401
        assert time.monotonic() - gone < PROMPT_S
    product.write(f"update {table} set is_active = 1 where {column} = ?", name)
    row = await product.row("select * from realtime_realtimesession where id = ? and ended_at is not null", session_id)
    assert (row["close_code"], bool(row["is_guest"])) == (4401, is_guest)
