"""Open conversations of the page end when the person signs out, or may not talk any more."""

from __future__ import annotations

import time
from functools import partial

import pytest

from tests.realtime.conftest import Serve
from tests.realtime.doors import guest, member, sign_out
from tests.realtime.product import Product
from tests.realtime.talker import call
from tests.realtime.webrtc.caller import calling, post_offer

PROMPT_S = 15.0
"""Credentials are looked at every two seconds; a busy machine takes its time."""


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(PUBLIC_PAGE="guest")


async def test_signing_out_ends_the_open_conversation_and_no_other(product: Product) -> None:
    here, there = await member(product), await member(product)
    async with (
        call(product.page_url, headers=here.headers, origin=here.origin) as talker,
        call(product.page_url, headers=there.headers, origin=there.origin) as other,
        call(product.url, product.keys["good"]) as program,
    ):
        gone = time.monotonic()
        await sign_out(product, here)
        assert await talker.wait_closed() == 4401
        assert time.monotonic() - gone < PROMPT_S
        assert talker.all("error")[0]["error"]["code"] == "signed_out"
        for one in (other, program):
            await one.send("input_audio_buffer.clear")
            await one.wait("input_audio_buffer.cleared")


async def test_signing_out_ends_the_call(product: Product) -> None:
    visitor = await member(product)
    post = partial(post_offer, product.origin, None, path="/voice/webrtc", **visitor.sent)
    async with calling(product.origin, None, post=post) as caller:
        gone = time.monotonic()
        await sign_out(product, visitor)
        assert (await caller.wait("session.closing"))["code"] == 4401
        await caller.wait_closed()
        assert time.monotonic() - gone < PROMPT_S


@pytest.mark.parametrize(
    ("is_guest", "table", "name"),
    [(True, "accounts_account", "Guests"), (False, "accounts_account", "Acme"), (False, "auth_user", "alice")],
)
async def test_who_is_switched_off_is_cut_off(product: Product, is_guest: bool, table: str, name: str) -> None:
    visitor = await (guest if is_guest else member)(product)
    column = "username" if table == "auth_user" else "name"
    async with call(product.page_url, headers=visitor.headers, origin=visitor.origin) as talker:
        session_id = talker.heard[0].event["session"]["id"]
        product.write(f"update {table} set is_active = 0 where {column} = ?", name)
        gone = time.monotonic()
        assert await talker.wait_closed() == 4401
        assert time.monotonic() - gone < PROMPT_S
    product.write(f"update {table} set is_active = 1 where {column} = ?", name)
    row = await product.row("select * from realtime_realtimesession where id = ? and ended_at is not null", session_id)
    assert (row["close_code"], bool(row["is_guest"])) == (4401, is_guest)
