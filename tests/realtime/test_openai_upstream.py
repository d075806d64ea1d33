"""Conversations with a model that a service of OpenAI's family serves: a second installation, over its own endpoint for
OpenAI's clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
import websockets
from websockets.typing import Subprotocol

from tests.engines.speech import word_errors
from tests.realtime.chat_server import KEY, ChatServer
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import PATIENCE_S, Event, Talker, call
from tests.realtime.test_chat_elsewhere import WEATHER, answer_of
from voiceapp.engines.interfaces import Samples

Voices = Callable[[str], Samples]

QUESTION = "What is twelve times twelve?"
ANSWER = "I am here."
DIALECTS = pytest.mark.parametrize("model", ["newer", "older"])


@pytest.fixture(scope="module")
def theirs(serve: Serve, chat_server: ChatServer) -> Product:
    """The service elsewhere."""
    return serve(CHAT_BASE_URL=chat_server.base_url, CHAT_API_KEY=KEY, CHAT_MODEL="bard")


@pytest.fixture(scope="module")
def ours(serve: Serve, theirs: Product) -> Product:
    """It knows the service by both of its dialects."""
    services = {"newer": {"DIALECT": "openai"}, "older": {"DIALECT": "openai-beta"}}
    usual = {"BASE_URL": f"{theirs.origin}/v1", "API_KEY": theirs.keys["good"], "REALTIME_MODEL": "voice"}
    variables = {
        f"UPSTREAM_{alias.upper()}_{name}": value
        for alias, about in services.items()
        for name, value in {**usual, **about}.items()
    }
    return serve(UPSTREAM_SERVICES=",".join(services), **variables)


@DIALECTS
async def test_a_session_of_text_alone_is_answered_in_text(ours: Product, model: str) -> None:
    async with call(ours.url, ours.keys["good"], model=model) as talker:
        await talker.send("session.update", session={"modalities": ["text"]})
        assert (await talker.wait("session.updated"))["session"]["modalities"] == ["text"]
        await talker.ask("Are you there?")
        response = (await talker.wait("response.done"))["response"]
    assert response["modalities"] == ["text"]
    assert response["output"][0]["content"] == [{"type": "text", "text": ANSWER}]
    assert not [kind for kind in talker.types if kind.startswith("response.audio")]


@DIALECTS
async def test_a_spoken_question_is_answered_and_recorded_here(ours: Product, voices: Voices, model: str) -> None:
    """The caller speaks at 16 kHz, which such a service does not take."""
    async with call(ours.url, ours.keys["good"], model=model, has_microphone=True) as talker:
        await talker.say(voices(QUESTION))
        assert answer_of(await talker.wait("response.done")) == ANSWER
        session_id = str(talker.all("session.created")[0]["session"]["id"])
    (transcript,) = talker.all("conversation.item.input_audio_transcription.completed")
    assert word_errors(QUESTION, transcript["transcript"]) <= 1
    row = await ours.row(
        "SELECT user_text, assistant_text, status, is_spoken, input_audio_ms > 0 AS has_input, output_audio_ms"
        " FROM realtime_turn WHERE session_id = ? AND ordinal = 1",
        session_id,
    )
    assert row == {
        "user_text": transcript["transcript"],
        "assistant_text": ANSWER,
        "status": "completed",
        "is_spoken": 1,
        "has_input": 1,
        "output_audio_ms": round(len(talker.audio()) / 48),
    }


@DIALECTS
async def test_tools_are_the_callers(ours: Product, model: str) -> None:
    async with call(ours.url, ours.keys["good"], model=model) as talker:
        await talker.send("session.update", session={"tools": [WEATHER], "turn_detection": {"type": "semantic_vad"}})
        settings = (await talker.wait("session.updated"))["session"]
        assert (settings["tools"], settings["turn_detection"]["type"]) == ([WEATHER], "semantic_vad")
        await talker.ask("How is the weather?")
        done = await talker.wait("response.function_call_arguments.done")
        assert (done["name"], json.loads(done["arguments"])) == ("weather", {"city": "Paris"})
        await talker.wait("response.done")
        output = {"type": "function_call_output", "call_id": done["call_id"], "output": '{"degrees": 21}'}
        await talker.send("conversation.item.create", item=output)
        await talker.send("response.create")
        assert answer_of(await talker.wait("response.done", count=2)) == "It is 21 degrees."


async def test_a_lost_service_fails_the_response_of_callers_of_either_dialect(ours: Product, theirs: Product) -> None:
    """The last test here: the service is gone then."""
    protocols = [Subprotocol("realtime"), Subprotocol(f"openai-insecure-api-key.{ours.keys['good']}")]
    heard: list[Event] = []
    async with (
        call(ours.url, ours.keys["good"], model="newer") as talker,
        websockets.connect(f"{ours.openai_url}?model=newer", subprotocols=protocols, proxy=None) as socket,
    ):
        for each in (talker, Talker(socket)):
            await each.ask("Tell me something endless.")
        await talker.wait("response.audio.delta", count=3)
        async with asyncio.timeout(PATIENCE_S):
            while not heard or heard[-1]["type"] != "response.output_audio.delta":
                heard.append(json.loads(await socket.recv()))
            await asyncio.to_thread(theirs.kill)
            while heard[-1]["type"] != "response.done":
                heard.append(json.loads(await socket.recv()))
        assert heard[-1]["response"]["status"] == "failed"
        assert (await talker.wait("response.done"))["response"]["status"] == "failed"
        assert (await talker.wait("error"))["error"]["code"] == "upstream_connection_lost"
