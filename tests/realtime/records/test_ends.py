"""How conversations end, and what does not end them, against the real server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

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
LIFETIME_S = 5
PROMPT_KEY_S = 10
"""A temporary key that is used at once, on a busy machine as well, and expires soon."""
PROMPT_S = 15.0
"""Five seconds are promised, to those whose machine does not run tests meanwhile."""


@pytest.fixture(scope="module")
def brief(serve: Serve) -> Product:
    """A server whose conversations last some seconds."""
    return serve(SESSION_LIFETIME_S=str(LIFETIME_S))


@pytest.fixture(scope="module")
def strict(serve: Serve) -> Product:
    """A server with a relay, whose sessions end with their temporary keys."""
    return serve(AOQ_PORT=str(free_udp_port()), TEMPORARY_KEYS_END_SESSIONS="1")


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


async def test_a_binary_frame_is_an_error_that_the_session_survives(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.socket.send(b"\0\1\2\3")

        await refused(talker, "invalid_frame")
        await lives_on(talker)


NO_EVENTS = ("{", "", "[]", "null", '"session.finish"', "[" * 100_000, '{"type": "\\ud800"}', "NaN")


async def test_what_is_no_event_is_an_error_that_the_session_survives(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        for count, text in enumerate(NO_EVENTS, 1):
            await talker.socket.send(text)

            error = (await talker.wait("error", count=count))["error"]
            assert error["type"] == "invalid_request_error"
            assert isinstance(error["code"], str)
            await lives_on(talker)


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


async def test_audio_faster_than_twice_real_time_ends_the_session(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await flood(talker, lambda: talker.append(SECOND_OF_SILENCE))

        await refused(talker, "audio_too_fast")
        await announced(talker, 4408)

    assert (await closed_books(product, talker))["close_code"] == 4408


async def test_a_burst_of_audio_is_no_flood(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        for _ in range(15):
            await talker.append(SECOND_OF_SILENCE)

        await lives_on(talker)


async def test_a_flood_of_messages_ends_the_session(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await flood(talker, lambda: talker.send("input_audio_buffer.clear"))

        await refused(talker, "too_many_messages")
        await announced(talker, 4408)


async def test_a_session_ends_when_its_time_is_over(brief: Product) -> None:
    async with call(brief.url, brief.keys["good"]) as talker:
        await talker.ask(LONG_QUESTION)
        await talker.wait("response.audio.delta")

        await announced(talker, 4000)

    assert LIFETIME_S - 0.5 < talker.heard[-1].at - talker.heard[0].at < LIFETIME_S + 5
    assert (await closed_books(brief, talker))["close_code"] == 4000
    assert (await brief.row("select status from realtime_turn"))["status"] == "cancelled"


async def test_a_revoked_key_ends_its_sessions_and_no_others(strict: Product) -> None:
    """Whichever door they came by."""
    origin, key, other = strict.origin, strict.keys["doomed"], strict.keys["good"]
    grant = await granted(origin, key)
    async with (
        call(strict.url, key) as first,
        call(strict.url, key) as second,
        call(strict.url, key, model="qwen3-tts-flash-realtime") as reading,
        calling_over_webrtc(origin, key) as caller,
        calling_over_aoq(grant) as peer,
        tasks_of(strict, key) as tasks,
        call(strict.url, other) as third,
        calling_over_webrtc(origin, other) as another,
    ):
        sessions = (first, second, reading, caller, peer)
        strict.write("update accounts_apikey set revoked_at = CURRENT_TIMESTAMP where name = 'doomed'")
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
    strict.write("update accounts_apikey set revoked_at = null where name = 'doomed'")
    ended = "select close_code from realtime_realtimesession where ended_at is not null and close_code = 4401"
    assert len(strict.rows(ended)) == len(sessions) + 1


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


async def temporary_key(product: Product, *, seconds: int) -> str:
    """A temporary key of the key `good`."""
    url = f"{product.origin}/api/v1/tokens?expire_in_seconds={seconds}"
    headers = {"Authorization": f"Bearer {product.keys['good']}"}
    async with aiohttp.ClientSession(headers=headers) as session, session.post(url) as response:
        return str((await response.json())["token"])


async def test_a_session_ends_with_its_temporary_key_where_it_is_told_to(strict: Product) -> None:
    product = strict
    brief, long = [await temporary_key(product, seconds=seconds) for seconds in (PROMPT_KEY_S, 600)]
    async with (
        call(product.url, brief) as expiring,
        call(product.url, long) as revoked,
        call(product.url, product.keys["good"]) as lasting,
    ):
        await announced(expiring, 4410)
        error = await refused(expiring, "temporary_key_expired")
        assert error["message"] == "The temporary key of this session has expired, or its API key is no longer valid."
        await asyncio.gather(lives_on(revoked), lives_on(lasting))

        product.write("update accounts_apikey set revoked_at = CURRENT_TIMESTAMP where name = 'good'")
        revoked_at = time.monotonic()
        await asyncio.gather(announced(revoked, 4410), announced(lasting, 4401))
        assert time.monotonic() - revoked_at < PROMPT_S

    assert (await closed_books(product, expiring))["close_code"] == 4410


async def test_a_session_goes_on_when_its_temporary_key_expires(product: Product) -> None:
    """Authentication counts at set-up only, unless the server is told otherwise."""
    brief = await temporary_key(product, seconds=PROMPT_KEY_S)
    async with call(product.url, brief) as talker:
        async with asyncio.timeout(PATIENCE_S):
            with suppress(InvalidStatus):
                while True:
                    async with call(product.url, brief):
                        await asyncio.sleep(0.2)
        await lives_on(talker)


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


# ── The server stops ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_stopping_server_lets_answers_finish(serve: Serve) -> None:
    product = serve()
    async with call(product.url, product.keys["good"]) as speaking, call(product.url, product.keys["good"]) as quiet:
        await speaking.ask("Say after me the garden is green today.")
        await speaking.wait("response.audio.delta")

        product.signal()

        assert await quiet.wait_closed() == 4012
        assert await speaking.wait_closed() == 4012

    assert quiet.types == ["session.created", "session.closing"]
    assert quiet.heard[-1].event["code"] == 4012
    assert speaking.types.index("session.closing") < speaking.types.index("response.done")
    assert speaking.all("response.done")[0]["response"]["status"] == "completed"
    assert len(speaking.audio()) / 48 > 1000
    assert product.stop() == 0
    rows = product.rows("select close_code from realtime_realtimesession")
    assert [row["close_code"] for row in rows] == [4012, 4012]
    assert "Traceback" not in product.log


async def test_an_answer_that_goes_on_too_long_is_cut_by_the_stop(serve: Serve) -> None:
    product = serve(DRAIN_S="3")
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask(LONG_QUESTION)
        await talker.wait("response.audio.delta")

        product.signal()

        assert await talker.wait_closed() == 4012
    assert product.stop() == 0
    assert product.rows("select close_code from realtime_realtimesession") == [{"close_code": 4012}]
    assert product.rows("select status from realtime_turn") == [{"status": "cancelled"}]


async def test_conversations_of_a_crashed_process_do_not_count_as_open(serve: Serve) -> None:
    product = serve()
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask(LONG_QUESTION)
        await talker.wait("response.audio.delta")
        await product.row("select id from realtime_realtimesession where ended_at is null")
        product.kill()
        await talker.wait_closed()

    product.start()

    assert product.rows("select id from realtime_realtimesession where ended_at is null") == []
    assert product.rows("select close_code from realtime_realtimesession") == [{"close_code": 1006}]
