"""Answers written by a language model elsewhere: spoken as they come, cut with the speech, honest about failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.realtime.chat_server import FIRST, KEY, SECOND, ChatServer
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import Talker, call
from voiceapp.agents.preamble import PREAMBLE
from voiceapp.engines.interfaces import Samples
from voiceapp.health import FRESH_S

Voices = Callable[[str], Samples]

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture(scope="module")
def product(serve: Serve, chat_server: ChatServer) -> Product:
    return serve(CHAT_BASE_URL=chat_server.base_url, CHAT_API_KEY=KEY, CHAT_MODEL="bard")


@pytest.fixture(autouse=True)
def fresh(chat_server: ChatServer) -> None:
    chat_server.go_on.clear()
    chat_server.left.clear()
    chat_server.requests.clear()


async def reasons_not_ready(product: Product) -> list[str]:
    async with aiohttp.ClientSession() as http, http.get(f"{product.origin}/readyz") as response:
        answer = await response.json()
    assert response.status == (503 if "reasons" in answer else 200)
    return [reason["code"] for reason in answer.get("reasons", [])]


async def has_happened(what: Any) -> bool:
    """A thing of the chat server's thread, within the time that anybody would wait."""
    return bool(await asyncio.to_thread(what.wait, 10))


def answer_of(done: dict[str, Any]) -> str:
    assert done["response"]["status"] == "completed"
    return str(done["response"]["output"][-1]["content"][0]["transcript"])


async def still_answers(talker: Talker) -> None:
    count = len(talker.all("response.done")) + 1
    await talker.ask("Are you there?")
    assert answer_of(await talker.wait("response.done", count=count)) == "I am here."


async def test_the_first_sentence_sounds_before_the_last_is_written(product: Product, chat_server: ChatServer) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask("Tell me a story.")
        await talker.wait("response.audio.delta", count=3)
        assert not talker.all("response.audio_transcript.done")

        chat_server.go_on.set()

        assert answer_of(await talker.wait("response.done")) == FIRST + SECOND
        deltas = [event["delta"] for event in talker.all("response.audio_transcript.delta")]
        assert len(deltas) > 3
        assert "".join(deltas) == FIRST + SECOND


async def test_the_model_gets_instructions_settings_and_what_was_said(
    product: Product, chat_server: ChatServer
) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.send(
            "session.update", session={"instructions": "Be kind.", "temperature": 0.3, "max_tokens": 50, "seed": 7}
        )
        await talker.ask("Good morning.")
        await talker.wait("response.done")
        await still_answers(talker)

    first, second = chat_server.requests
    told, asked = first["messages"]
    assert told["role"] == "system"
    preamble, instructions, date = told["content"].split("\n\n")
    assert (preamble, instructions) == (PREAMBLE, "Be kind.")
    assert date.startswith("Today is ")
    assert asked == {"role": "user", "content": "Good morning."}
    assert second["messages"][0] == told, "prompt caches keep what does not change"
    assert [message["content"] for message in second["messages"][2:]] == ["I am here.", "Are you there?"]
    assert (first["model"], first["stream"], first["temperature"], first["seed"]) == ("bard", True, 0.3, 7)


async def test_speech_ends_the_writing_elsewhere(product: Product, chat_server: ChatServer, voices: Voices) -> None:
    speech = voices("Where do the swallows go in winter?")
    async with call(product.url, product.keys["good"], has_microphone=True) as talker:
        await talker.ask("Tell me something endless.")
        await talker.wait("response.audio.delta", count=12)
        assert not chat_server.left.is_set()

        await talker.say(speech)

        assert (await talker.wait("response.done"))["response"]["status"] == "cancelled"
        assert await has_happened(chat_server.left)
        assert answer_of(await talker.wait("response.done", count=2)) == "I am here."
        (truncated,) = talker.all("conversation.item.truncated")

    heard = [message for message in chat_server.requests[-1]["messages"] if message["role"] == "assistant"]
    assert [message["content"] for message in heard] == [truncated["transcript"]]
    assert truncated["unheard"]


@pytest.mark.parametrize("leave", ["cancel", "vanish"])
async def test_a_client_that_cancels_or_leaves_ends_the_writing_elsewhere(
    product: Product, chat_server: ChatServer, leave: str
) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask("Tell me something endless.")
        await talker.wait("response.audio.delta")

        if leave == "cancel":
            await talker.send("response.cancel")
            assert (await talker.wait("response.done"))["response"]["status"] == "cancelled"
            await still_answers(talker)
        else:
            talker.socket.transport.abort()
            await talker.wait_closed()

        assert await has_happened(chat_server.left)


async def test_a_function_is_called_by_the_client_and_its_answer_spoken(
    product: Product, chat_server: ChatServer
) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.send("session.update", session={"tools": [WEATHER]})
        await talker.ask("What is the weather in Paris?")
        done = (await talker.wait("response.done"))["response"]

        (item,) = done["output"]
        assert (done["status"], item["type"], item["name"]) == ("completed", "function_call", "weather")
        assert json.loads(item["arguments"]) == {"city": "Paris"}
        (arguments,) = talker.all("response.function_call_arguments.done")
        assert (arguments["call_id"], arguments["arguments"]) == (item["call_id"], item["arguments"])
        assert not talker.all("response.audio.delta")

        await talker.send(
            "conversation.item.create",
            item={"type": "function_call_output", "call_id": item["call_id"], "output": '{"degrees": 21}'},
        )
        await talker.send("response.create")
        assert answer_of(await talker.wait("response.done", count=2)) == "It is 21 degrees."
        assert talker.audio()

    first, second = chat_server.requests
    assert first["tools"] == [WEATHER]
    called, answered = second["messages"][-2:]
    assert called["tool_calls"][0]["id"] == answered["tool_call_id"] == "call_7"
    assert called["tool_calls"][0]["function"]["name"] == "weather"


async def test_a_server_that_is_down_fails_the_answer_until_it_is_back(
    product: Product, chat_server: ChatServer
) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        chat_server.stop()
        await talker.ask("Are you there?")
        done = (await talker.wait("response.done"))["response"]

        assert await reasons_not_ready(product) == ["model_unavailable"]
        chat_server.start()

        assert done["status"] == "failed"
        assert "chat server" in done["status_details"]["error"]["message"]
        await still_answers(talker)
        await asyncio.sleep(FRESH_S)  # so long serves one look
        assert await reasons_not_ready(product) == []
    assert "Traceback" not in product.log


async def test_the_model_reads_the_documents_and_names_what_it_used(product: Product, chat_server: ChatServer) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask("How do I create an API key?")
        assert answer_of(await talker.wait("response.done")) == "With the command createkey."
        (source,) = talker.all("response.source.added")
        assert (source["page"], source["title"]) == ("api-keys", "API keys")
        (request,) = chat_server.requests
        read = request["messages"][-1]["content"]
        assert (f"API keys: {source['text']}" in read, "[1]" in read) == (True, False)
        await talker.ask("Are you there?")
        await talker.wait("response.done", count=2)
        # What was read for one message is not kept for the next.
        assert chat_server.requests[1]["messages"][1]["content"] == "How do I create an API key?"
        assert chat_server.requests[1]["messages"][-1]["content"] == "Are you there?"


async def test_what_a_skill_computes_is_not_left_to_the_model_and_each_reply_says_who_wrote_it(
    product: Product, chat_server: ChatServer
) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask("What is 17 times 23?")
        (sum_,) = (await talker.wait("response.done"))["response"]["output"]
        assert (sum_["author"]["kind"], "391" in sum_["content"][0]["transcript"]) == ("skill", True)
        assert chat_server.requests == []
        await talker.ask("Are you there?")
        (written,) = (await talker.wait("response.done", count=2))["response"]["output"]
        assert len(chat_server.requests) == 1
        assert written["author"] == {"kind": "model", "name": chat_server.requests[0]["model"], "may_be_wrong": False}
        # A program's functions come before ours.
        await talker.send("session.update", session={"tools": [WEATHER]})
        await talker.ask("What is 17 times 23?")
        await talker.wait("response.done", count=3)
        assert len(chat_server.requests) == 2
