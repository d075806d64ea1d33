"""A session survives its connection, with the real server."""

from __future__ import annotations

import pytest

from tests.realtime.conftest import Serve
from tests.realtime.doors import guest
from tests.realtime.product import Product
from tests.realtime.talker import Talker, call

QUESTION = "What is twelve times twelve?"
RESUMABLE = "&resume=on"
HEARD_MS = 250
BYTES_PER_MS = 48


def number(event_id: str) -> int:
    return int(event_id.removeprefix("event_"))


async def resumption(talker: Talker, *, heard: str = "") -> str:
    """What the next connection has to say."""
    token = (await talker.wait("session.resumable"))["token"]
    last = max(number(heard.event["event_id"]) for heard in talker.heard)
    return f"&resume={token}&last={last}&heard={heard}"


def cut(talker: Talker) -> None:
    """The connection is gone without a word."""
    talker.socket.transport.abort()


async def test_a_reply_goes_on_over_the_next_connection_where_it_was_heard(product: Product) -> None:
    async with call(product.url, product.keys["good"], query=RESUMABLE) as first:
        await first.ask(QUESTION)
        await first.wait("response.audio.delta", count=4)
        (item_id,) = {delta["item_id"] for delta in first.all("response.audio.delta")}
        query = await resumption(first, heard=f"{item_id}:{HEARD_MS}")
        cut(first)
        await first.wait_closed()
    async with call(product.url, product.keys["good"], query=query, awaits="session.resumed") as second:
        await second.wait("response.done")
        await second.send("session.finish")
        assert await second.wait_closed() == 1000
    assert second.types[0] == "session.resumed"
    assert second.all("session.resumed")[0]["received"] == 2
    assert not second.all("session.created")
    said_before = first.audio()[HEARD_MS * BYTES_PER_MS :]
    assert second.audio().startswith(said_before)
    assert len(second.audio()) > len(said_before)
    assert len(second.all("response.audio.done")) == 1
    last = max(number(one.event["event_id"]) for one in first.heard)
    numbers = [number(one.event["event_id"]) for one in second.heard[1:]]
    assert [one for one in numbers if one > last] == list(range(last + 1, max(numbers) + 1))
    session_id = first.all("session.created")[0]["session"]["id"]
    row = await product.row(
        "SELECT close_code, turn_count FROM realtime_realtimesession WHERE id = ? AND ended_at IS NOT NULL", session_id
    )
    assert row == {"close_code": 1000, "turn_count": 1}


@pytest.mark.parametrize(("wanted", "is_taken"), [("a-token_of_the_callers_own-1", True), ("too-short", False)])
async def test_a_caller_may_choose_the_token_once(product: Product, wanted: str, is_taken: bool) -> None:
    async with call(product.url, product.keys["good"], query=f"&resume={wanted}") as first:
        query = await resumption(first)
        assert (f"resume={wanted}&" in query) is is_taken
        async with call(product.url, product.keys["doomed"], query=f"&resume={wanted}") as other:
            assert wanted not in await resumption(other)
        async with call(product.url, product.keys["good"], query=query, awaits="session.resumed"):
            assert await first.wait_closed() == 4013


async def test_one_connection_is_live_and_it_is_the_newest(product: Product) -> None:
    async with call(product.url, product.keys["good"], query=RESUMABLE) as first:
        query = await resumption(first)
        async with call(product.url, product.keys["good"], query=query, awaits="session.resumed") as second:
            assert await first.wait_closed() == 4013
            await second.send("input_audio_buffer.clear")
            await second.wait("input_audio_buffer.cleared")


async def test_nobody_else_takes_a_session_over(product: Product) -> None:
    async with call(product.url, product.keys["good"], query=RESUMABLE) as first:
        query = await resumption(first)
        other = await guest(product)
        async with call(product.page_url, headers=other.headers, origin=other.origin, query=query) as second:
            assert "session.resumed" not in second.types
        await first.send("input_audio_buffer.clear")
        await first.wait("input_audio_buffer.cleared")


async def test_stock_clients_are_told_nothing_of_it(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        session_id = talker.all("session.created")[0]["session"]["id"]
        await talker.send("input_audio_buffer.clear")
        await talker.wait("input_audio_buffer.cleared")
        assert not talker.all("session.resumable")
        cut(talker)
    row = await product.row(
        "SELECT close_code FROM realtime_realtimesession WHERE id = ? AND ended_at IS NOT NULL", session_id
    )
    assert row["close_code"] in (1005, 1006)


async def test_a_query_that_cannot_be_read_is_refused(product: Product) -> None:
    with pytest.raises(Exception, match="400"):
        async with call(product.url, product.keys["good"], query="&resume=abc&last=many"):
            pass


async def test_a_session_waits_in_its_seat_and_not_for_ever(serve: Serve) -> None:
    product = serve(MAX_SESSIONS="1", RESUME_GRACE_S="3")
    async with call(product.url, product.keys["good"], query=RESUMABLE) as first:
        session_id = first.all("session.created")[0]["session"]["id"]
        query = await resumption(first)
        cut(first)
        await first.wait_closed()
    async with call(product.url, product.keys["good"], query=query, awaits="session.resumed") as second:
        with pytest.raises(Exception, match="503"):
            async with call(product.url, product.keys["good"]):
                pass
        query = await resumption_of(second, query)
        cut(second)
        await second.wait_closed()
    row = await product.row(
        "SELECT close_code, close_reason FROM realtime_realtimesession WHERE id = ? AND ended_at IS NOT NULL",
        session_id,
        within_s=30,
    )
    assert row == {"close_code": 1006, "close_reason": "The connection was lost."}
    async with call(product.url, product.keys["good"], query=query) as third:
        assert third.types[0] == "session.created"


async def resumption_of(talker: Talker, before: str) -> str:
    """What the next connection has to say, after one that was not told the token anew."""
    return before.rpartition("&last")[0] + f"&last={max(number(one.event['event_id']) for one in talker.heard)}"


async def test_a_stop_of_the_server_ends_a_session_that_waits(serve: Serve) -> None:
    product = serve(RESUME_GRACE_S="600")
    async with call(product.url, product.keys["good"], query=RESUMABLE) as first:
        cut(first)
        await first.wait_closed()
    await product.logged("connection lost, waiting 600 s")
    assert product.stop() == 0
    assert product.rows("SELECT close_code FROM realtime_realtimesession") == [{"close_code": 1006}]
    assert "Cutting off" not in product.log
