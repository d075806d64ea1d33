"""How conversations end, and what does not end them, against the real server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.ports import free_udp_port
from tests.realtime.aoq.peer import calling as calling_over_aoq
from tests.realtime.aoq.peer import granted
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import PATIENCE_S, EventsHeard, Talker, call
from tests.realtime.webrtc.caller import Caller
from tests.realtime.webrtc.caller import calling as calling_over_webrtc

LONG_QUESTION = "What can you do?"
SECOND_OF_SILENCE = bytes(32_000)
PROMPT_S = 15.0
"""Five seconds are promised, to those whose machine does not run tests meanwhile."""


@pytest.fixture(scope="module")
def relayed(serve: Serve) -> Product:
    return serve(AOQ_PORT=str(free_udp_port()))


async def lives_on(talker: Talker | Caller) -> None:
    """The session still answers."""
    await talker.send("input_audio_buffer.clear")
    await talker.wait("input_audio_buffer.cleared", count=len(talker.all("input_audio_buffer.cleared")) + 1)


async def refused(talker: EventsHeard, code: str) -> dict[str, Any]:
    error: dict[str, Any] = (await talker.wait("error"))["error"]
    assert error["code"] == code
    assert error["message"]
    return error


async def announced(talker: Talker, code: int) -> None:
    """The server says why it closes, then closes with that code; nothing follows."""
    assert await talker.wait_closed() == code
    assert talker.heard[-1].event["type"] == "session.closing"
    assert talker.heard[-1].event["code"] == code
    assert talker.heard[-1].event["reason"]


async def flood(talker: Talker, send: Callable[[], Awaitable[None]]) -> None:
    """Send until the server has had enough: how fast it reads is the machine's business."""
    async with asyncio.timeout(PATIENCE_S):
        with suppress(ConnectionClosed):
            while not talker.all("error"):
                await send()
                await asyncio.sleep(0)


async def closed_books(product: Product, talker: Talker) -> dict[str, Any]:
    return await product.row(
        "select * from realtime_realtimesession where id = ? and ended_at is not null",
        talker.heard[0].event["session"]["id"],
    )


# ── What a session survives ──────────────────────────────────────────────────────────────────────────────────────────


TEXTS = ("{", "", "[]", "null", '"session.finish"', "[" * 100_000, '{"type": "\\ud800"}', "NaN")
NO_EVENTS: tuple[str | bytes, ...] = (*TEXTS, b"\0\1\2\3")


async def test_what_is_no_event_is_an_error_that_the_session_survives(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        for count, message in enumerate(NO_EVENTS, 1):
            await talker.socket.send(message)

            error = (await talker.wait("error", count=count))["error"]
            assert error["type"] == "invalid_request_error"
            assert isinstance(error["code"], str)
            await lives_on(talker)
        assert talker.all("error")[-1]["error"]["code"] == "invalid_frame"


async def test_an_error_names_the_event_that_caused_it(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.send("session.dance", event_id="event_of_mine")
        await talker.send("input_audio_buffer.append", event_id="event_of_mine_2", audio="AAA")

        await talker.wait("error", count=2)
        assert [event["error"]["event_id"] for event in talker.all("error")] == ["event_of_mine", "event_of_mine_2"]
        assert all(event["event_id"] for event in talker.all("error"))
        await lives_on(talker)


async def test_words_that_no_encoding_knows_do_no_harm(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask("say after me \ud800 hello")

        done = await talker.wait("response.done")
        assert done["response"]["status"] == "completed"
        await lives_on(talker)
        await talker.send("session.finish")
        await talker.wait_closed()

    assert (await closed_books(product, talker))["turn_count"] == 1


# ── What ends it ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_message_over_a_mebibyte_closes_the_connection(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.socket.send("x" * (1024 * 1024 + 1))

        assert await talker.wait_closed() == 1009

    assert await closed_books(product, talker)


FLOODS: dict[str, Callable[[Talker], Awaitable[None]]] = {
    "audio_too_fast": lambda talker: talker.append(SECOND_OF_SILENCE),
    "too_many_messages": lambda talker: talker.send("input_audio_buffer.clear"),
}


@pytest.mark.parametrize("code", FLOODS)
async def test_a_flood_ends_the_session(product: Product, code: str) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await flood(talker, lambda: FLOODS[code](talker))

        await refused(talker, code)
        await announced(talker, 4408)

    assert (await closed_books(product, talker))["close_code"] == 4408


async def test_a_burst_of_audio_is_no_flood(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        for _ in range(15):
            await talker.append(SECOND_OF_SILENCE)

        await lives_on(talker)


async def test_a_revoked_key_ends_its_sessions_and_no_others(relayed: Product) -> None:
    """Whichever door they came by."""
    origin, key, other = relayed.origin, relayed.keys["doomed"], relayed.keys["good"]
    grant = await granted(origin, key)
    async with (
        call(relayed.url, key) as first,
        call(relayed.url, key) as second,
        call(relayed.url, key, model="qwen3-tts-flash-realtime") as reading,
        calling_over_webrtc(origin, key) as caller,
        calling_over_aoq(grant) as peer,
        tasks_of(relayed, key) as tasks,
        call(relayed.url, other) as third,
        calling_over_webrtc(origin, other) as another,
    ):
        sessions = (first, second, reading, caller, peer)
        relayed.write("update accounts_apikey set revoked_at = CURRENT_TIMESTAMP where name = 'doomed'")
        revoked_at = time.monotonic()
        failed = json.loads(await tasks.recv())["header"]
        await asyncio.gather(*(session.wait_closed() for session in sessions), tasks.wait_closed())
        assert time.monotonic() - revoked_at < PROMPT_S
        assert [session.all("session.closing")[0]["code"] for session in (first, second, caller, peer)] == [4401] * 4
        assert [session.close_code for session in (first, second, reading, peer)] == [4401] * 4
        assert (failed["event"], failed["error_code"], tasks.close_code) == ("task-failed", "invalid_api_key", 4401)
        for session in sessions:
            await refused(session, "invalid_api_key")
        await asyncio.gather(lives_on(third), lives_on(another))
    relayed.write("update accounts_apikey set revoked_at = null where name = 'doomed'")
    ended = "select close_code from realtime_realtimesession where ended_at is not null and close_code = 4401"
    assert len(relayed.rows(ended)) == len(sessions) + 1


@asynccontextmanager
async def tasks_of(product: Product, key: str) -> AsyncIterator[ClientConnection]:
    """A connection for tasks, one of which waits for text."""
    url = f"ws://{product.address}/api-ws/v1/inference"
    task = {"task_group": "audio", "task": "tts", "function": "SpeechSynthesizer", "model": "cosyvoice-v2"}
    header = {"action": "run-task", "task_id": "one", "streaming": "duplex"}
    async with connect(url, additional_headers={"Authorization": f"Bearer {key}"}, proxy=None) as socket:
        await socket.send(json.dumps({"header": header, "payload": {"input": {}, **task}}))
        assert json.loads(await socket.recv())["header"]["event"] == "task-started"
        yield socket


async def test_nothing_goes_on_after_the_callers_left(product: Product) -> None:
    """Several at once, in the middle of their answers: all work stops, all books are closed."""
    async with asyncio.TaskGroup() as tasks:
        left = [tasks.create_task(leave_in_the_middle(product)) for _ in range(6)]

    for session in left:
        of_it = "select * from realtime_realtimesession where id = ? and ended_at is not null"
        assert (await product.row(of_it, session.result()))["close_code"] in (1005, 1006), "no close frame came"
        turns = product.rows("select status from realtime_turn where session_id = ?", session.result())
        assert turns == [{"status": "cancelled"}]
    assert "Traceback" not in product.log


async def leave_in_the_middle(product: Product) -> str:
    """Hang up while the answer sounds; returns the session's id."""
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask(LONG_QUESTION)
        await talker.wait("response.audio.delta")
        talker.socket.transport.abort()
        await talker.wait_closed()
    return str(talker.heard[0].event["session"]["id"])
