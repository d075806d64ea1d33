"""Conversations with a model that a second installation of this product serves, over every transport of the first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import websockets
from websockets.typing import Subprotocol

from tests.engines.speech import word_errors
from tests.ports import free_port, free_udp_port
from tests.realtime.aoq import peer as aoq
from tests.realtime.chat_server import KEY, ChatServer
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import PATIENCE_S, Event, EventsHeard, Talker, call, samples_at
from tests.realtime.test_chat_elsewhere import answer_of
from tests.realtime.webrtc import caller as webrtc
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.interfaces import Samples

Voices = Callable[[str], Samples]

QUESTION = "What do you like about music?"
ANSWER = "I am here."
MODEL = "upstream"


@pytest.fixture(scope="module")
def theirs(serve: Serve, chat_server: ChatServer) -> Product:
    """The service elsewhere."""
    return serve(CHAT_BASE_URL=chat_server.base_url, CHAT_API_KEY=KEY, CHAT_MODEL="bard")


@pytest.fixture(scope="module")
def ours(serve: Serve, theirs: Product) -> Product:
    """It knows the service by our dialect, and by OpenAI's."""
    usual = {"BASE_URL": f"{theirs.origin}/v1", "API_KEY": theirs.keys["good"], "REALTIME_MODEL": "voice"}
    openai = {f"UPSTREAM_OPENAI_{name}": value for name, value in {**usual, "DIALECT": "openai"}.items()}
    return serve(
        AOQ_PORT=str(free_udp_port()),
        UPSTREAM_SERVICES="openai",
        **openai,
        UPSTREAM_BASE_URL=theirs.origin,
        UPSTREAM_API_KEY=theirs.keys["good"],
        UPSTREAM_REALTIME_MODEL="voice",
        UPSTREAM_SESSION_LIMIT_S="4",  # so that longer conversations move to new sessions, which nobody notices
    )


async def turn_of(product: Product, session_id: str) -> dict[str, object]:
    return await product.row(
        "SELECT user_text, assistant_text, heard_text, status, interrupted, is_spoken, input_audio_ms > 0 AS has_input,"
        " output_audio_ms, first_audio_ms > 0 AS was_timed FROM realtime_turn WHERE session_id = ? AND ordinal = 1",
        session_id,
    )


def session_of(heard: EventsHeard) -> str:
    return str(heard.all("session.created")[0]["session"]["id"])


async def sounds_right(speech: Samples) -> None:
    heard = (await Moonshine().recognize(speech)).text
    assert min(word_errors(words, heard) for words in (ANSWER, "I'm here.")) <= 1, heard


async def test_a_spoken_question_is_answered_and_recorded_here(ours: Product, theirs: Product, voices: Voices) -> None:
    async with call(ours.url, ours.keys["good"], model=MODEL, has_microphone=True) as talker:
        await talker.say(voices(QUESTION))
        assert answer_of(await talker.wait("response.done")) == ANSWER
        session_id = session_of(talker)
    await sounds_right(samples_at(talker.audio(), 24_000))
    (transcript,) = talker.all("conversation.item.input_audio_transcription.completed")
    assert talker.all("session.created")[0]["session"]["model"] == MODEL
    assert session_id.startswith("sess_")
    row = await turn_of(ours, session_id)
    assert row | {"output_audio_ms": 0} == {
        "user_text": transcript["transcript"],
        "assistant_text": ANSWER,
        "heard_text": "",
        "status": "completed",
        "interrupted": 0,
        "is_spoken": 1,
        "has_input": 1,
        "output_audio_ms": 0,
        "was_timed": 1,
    }
    assert row["output_audio_ms"] == round(len(talker.audio()) / 48)
    assert not theirs.rows("SELECT id FROM realtime_realtimesession WHERE id = ?", session_id)
    secret = theirs.keys["good"]
    assert secret not in json.dumps([heard.event for heard in talker.heard])
    assert secret not in ours.log


async def test_a_call_over_webrtc_ends_here(ours: Product, voices: Voices) -> None:
    async with webrtc.calling(ours.origin, ours.keys["good"], model=MODEL) as caller:
        await caller.microphone.say(voices(QUESTION))
        assert answer_of(await caller.wait("response.done")) == ANSWER
        await caller.wait_loud()
        await caller.wait_quiet()
        session_id = session_of(caller)
    await sounds_right(caller.speech())
    assert not caller.all("response.audio.delta")
    assert not caller.all("error")
    row = await turn_of(ours, session_id)
    assert (row["assistant_text"], row["is_spoken"], row["has_input"]) == (ANSWER, 1, 1)


async def test_a_session_over_aoq_ends_here(ours: Product, voices: Voices) -> None:
    status, grant = await aoq.allocate(ours.origin, ours.keys["good"], model=MODEL)
    assert status == 200
    async with aoq.calling(grant) as peer:
        await peer.say(voices(QUESTION))
        assert answer_of(await peer.wait("response.done")) == ANSWER
        await peer.send("session.finish")
        await peer.wait("session.finished")
        assert await peer.wait_closed() == 1000
    await sounds_right(peer.speech())
    row = await turn_of(ours, session_of(peer))
    assert (row["assistant_text"], row["is_spoken"]) == (ANSWER, 1)


@pytest.mark.parametrize("query", ["", "&resume=on"])
async def test_a_response_can_be_cut_off(ours: Product, query: str) -> None:
    """Events pass as they are, or one by one where they may have to be told again."""
    async with call(ours.url, ours.keys["good"], model=MODEL, query=query) as talker:
        await talker.ask("Tell me something endless.")
        await talker.wait("response.audio.delta", count=12)
        await talker.send("response.cancel")
        assert (await talker.wait("response.done"))["response"]["status"] == "cancelled"
        truncated = await talker.wait("conversation.item.truncated")
        await talker.ask("Are you there?")
        assert answer_of(await talker.wait("response.done", count=2)) == ANSWER
        session_id = session_of(talker)
    row = await turn_of(ours, session_id)
    assert (row["status"], row["interrupted"], row["heard_text"]) == ("cancelled", 1, truncated["transcript"])
    assert bool(talker.all("session.resumable")) is bool(query)


async def test_a_conversation_goes_on_in_a_new_session_there(
    ours: Product, theirs: Product, chat_server: ChatServer
) -> None:
    """The limit of a session there is 4 s here."""
    async with call(ours.url, ours.keys["good"], model=MODEL) as talker:
        await talker.send("session.update", session={"instructions": "Be kind."})
        await talker.ask("Good morning.")
        await talker.wait("response.done")
        await ours.logged(f"session {session_of(talker)}: goes on in a new session at the service")
        told = list(talker.types)
        await talker.ask("Are you there?")
        assert answer_of(await talker.wait("response.done", count=2)) == ANSWER
        items = [event["item"]["id"] for event in talker.all("conversation.item.created")]
        await talker.send("conversation.item.retrieve", item_id=items[0])
        assert (await talker.wait("conversation.item.retrieved"))["item"]["content"][0]["text"] == "Good morning."
    assert told[-1] == "response.done"
    assert not talker.all("error")
    assert len(talker.all("session.created")) == 1
    seen = [(message["role"], message["content"]) for message in chat_server.requests[-1]["messages"]]
    greeting = ("user", "Good morning.")
    assert "Be kind." in seen[0][1]
    assert seen[1:] == [greeting, ("assistant", ANSWER), ("user", "Are you there?")]


async def test_clients_of_the_newer_dialect_are_understood(ours: Product) -> None:
    """Their events are translated here; the service is spoken to in ours."""
    protocols = [Subprotocol("realtime"), Subprotocol(f"openai-insecure-api-key.{ours.keys['good']}")]
    heard: list[Event] = []
    async with websockets.connect(f"{ours.openai_url}?model={MODEL}", subprotocols=protocols, proxy=None) as socket:
        talker = Talker(socket)
        await talker.ask("Are you there?")
        async with asyncio.timeout(PATIENCE_S):
            while not heard or heard[-1]["type"] != "response.done":
                heard.append(json.loads(await socket.recv()))
    assert heard[0]["session"]["type"] == "realtime"
    assert heard[-1]["response"]["output"][0]["content"][0]["transcript"] == ANSWER
    types = {event["type"] for event in heard}
    assert "response.output_audio.delta" in types
    assert "response.audio.delta" not in types


# ── Services of OpenAI's family ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_session_of_text_alone_is_answered_in_text(ours: Product) -> None:
    async with call(ours.url, ours.keys["good"], model="openai") as talker:
        await talker.send("session.update", session={"modalities": ["text"]})
        assert (await talker.wait("session.updated"))["session"]["modalities"] == ["text"]
        await talker.ask("Are you there?")
        response = (await talker.wait("response.done"))["response"]
    assert response["modalities"] == ["text"]
    assert response["output"][0]["content"] == [{"type": "text", "text": ANSWER}]
    assert not [kind for kind in talker.types if kind.startswith("response.audio")]


async def test_of_two_services_one_may_be_killed_and_a_front_without_weights_loses_no_session(
    serve: Serve, chat_server: ChatServer, tmp_path: Path
) -> None:
    chat = {"CHAT_BASE_URL": chat_server.base_url, "CHAT_API_KEY": KEY, "CHAT_MODEL": "bard"}
    one = serve(**chat)
    other = serve(**chat, DATABASE_URL=one.environment["DATABASE_URL"])
    key = one.keys["good"]
    front = serve(
        EMBEDDED_MODELS="0",
        MODELS_DIR=str(tmp_path),
        UPSTREAM_BASE_URL=f"{one.origin}, {other.origin}",
        UPSTREAM_API_KEY=key,
        UPSTREAM_REALTIME_MODEL="voice",
        TTS_BASE_URL=f"{one.origin}/v1,{other.origin}/v1",
        TTS_API_KEY=key,
        TTS_MODEL="tts-1",
    )
    assert {await asyncio.to_thread(speaks, front) for _ in range(4)} == {200}
    async with AsyncExitStack() as calls:
        talkers = [await calls.enter_async_context(call(front.url, key)) for _ in range(4)]
        for talker in talkers:
            await talker.ask("Good morning.")
            assert answer_of(await talker.wait("response.done")) == ANSWER
        await asyncio.to_thread(one.kill)
        for talker in talkers:
            await talker.ask("Are you there?")
            assert answer_of(await talker.wait("response.done", count=2)) == ANSWER
            assert "Good morning." in [message["content"] for message in chat_server.requests[-1]["messages"]]
            assert not talker.all("error")
    assert front.log.count("goes on in a new session at the service") == 2, "each service had two"
    assert {await asyncio.to_thread(speaks, front) for _ in range(4)} == {200}
    assert front.reasons() == []
    other.kill()
    async with asyncio.timeout(PATIENCE_S):
        while await asyncio.to_thread(front.reasons) != ["model_unavailable"]:  # noqa: ASYNC110
            await asyncio.sleep(0.5)


async def test_other_services_and_then_this_server_stand_in_for_one_that_is_killed(
    serve: Serve, theirs: Product, chat_server: ChatServer
) -> None:
    chat = {"CHAT_BASE_URL": chat_server.base_url, "CHAT_API_KEY": KEY, "CHAT_MODEL": "bard"}
    one = serve(**chat)
    front = serve(
        **chat,
        UPSTREAM_BASE_URL=one.origin,
        UPSTREAM_API_KEY=one.keys["good"],
        UPSTREAM_REALTIME_MODEL="voice",
        UPSTREAM_SERVICES="two,gone",
        UPSTREAM_TWO_BASE_URL=theirs.origin,
        UPSTREAM_TWO_API_KEY=theirs.keys["good"],
        UPSTREAM_TWO_REALTIME_MODEL="voice",
        UPSTREAM_GONE_BASE_URL=f"http://127.0.0.1:{free_port()}",
        UPSTREAM_GONE_API_KEY=KEY,
        MODEL_FALLBACKS="upstream>gone>two,gone>voice",
        AOQ_PORT=str(free_udp_port()),
    )
    async with call(front.url, front.keys["good"], model="upstream") as talker:
        await talker.ask("Good morning.")
        assert answer_of(await talker.wait("response.done")) == ANSWER
        await asyncio.to_thread(one.kill)
        await talker.ask("Are you there?")
        assert answer_of(await talker.wait("response.done", count=2)) == ANSWER
        assert "Good morning." in [message["content"] for message in chat_server.requests[-1]["messages"]]
        assert not talker.all("error")
    assert "goes on in a new session at the service" in front.log
    for model in ("upstream", "gone"):
        async with call(front.url, front.keys["good"], model=model) as talker:
            await talker.ask("Is someone there?")
            assert answer_of(await talker.wait("response.done")) == ANSWER
    assert "model gone/gone: another one stands in" in front.log
    async with aoq.calling(await aoq.granted(front.origin, front.keys["good"], model="gone")) as peer:
        await peer.ask("Is someone there?")
        assert answer_of(await peer.wait("response.done")) == ANSWER


def speaks(product: Product) -> int:
    """Return the status of a request for speech."""
    speech = {"model": "tts-1", "input": "Hello.", "voice": "woman", "response_format": "pcm"}
    reply = product.ask("/v1/audio/speech", speech)
    assert reply.headers["X-Served-By"] == "server/tts-1"
    assert reply.content
    return reply.status
