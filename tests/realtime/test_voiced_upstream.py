"""Conversations that a second installation hears and thinks in, and the first one speaks in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engines.speech import word_errors
from tests.ports import free_udp_port
from tests.realtime.aoq import peer as aoq
from tests.realtime.chat_server import FIRST, KEY, SECOND, ChatServer
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import Event, Talker, call, samples_at
from tests.realtime.test_chat_elsewhere import WEATHER, answer_of, has_happened
from tests.realtime.webrtc import caller as webrtc
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.interfaces import Samples

Voices = Callable[[str], Samples]

ANSWER = "I am here."
EACH = pytest.mark.parametrize("model", ["native", "newer"])


@pytest.fixture(scope="module")
def theirs(serve: Serve, chat_server: ChatServer) -> Product:
    """The service elsewhere."""
    return serve(CHAT_BASE_URL=chat_server.base_url, CHAT_API_KEY=KEY, CHAT_MODEL="bard")


@pytest.fixture(scope="module")
def ours(serve: Serve, theirs: Product) -> Product:
    """It knows the service by two dialects."""
    services = {
        "native": {"BASE_URL": theirs.origin, "REALTIME_MODEL": "voice"},
        "newer": {"BASE_URL": f"{theirs.origin}/v1", "REALTIME_MODEL": "gpt-realtime", "DIALECT": "openai"},
    }
    usual = {"API_KEY": theirs.keys["good"], "VOICE": "ours"}
    variables = {
        f"UPSTREAM_{alias.upper()}_{name}": value
        for alias, about in services.items()
        for name, value in {**usual, **about}.items()
    }
    return serve(UPSTREAM_SERVICES=",".join(services), AOQ_PORT=str(free_udp_port()), **variables)


@pytest.fixture(autouse=True)
def fresh(chat_server: ChatServer) -> None:
    chat_server.left.clear()
    chat_server.requests.clear()


def said_there(chat_server: ChatServer) -> list[str]:
    """The replies of the conversation, as the service reads them for its next one."""
    return [str(each["content"]) for each in chat_server.requests[-1]["messages"] if each["role"] == "assistant"]


def heard_here(truncated: Event) -> list[str]:
    """The same as it has to be after a reply was cut off: without it, if that was before its first word was over."""
    return [truncated["transcript"]] if truncated["transcript"] else []


async def sound_of(talker: Talker) -> str:
    return (await Moonshine().recognize(samples_at(talker.audio(), 24_000))).text


@EACH
async def test_a_reply_is_written_there_and_spoken_here(ours: Product, theirs: Product, model: str) -> None:
    async with call(ours.url, ours.keys["good"], model=model) as talker:
        await talker.ask("Are you there?")
        response = (await talker.wait("response.done"))["response"]
        assert answer_of({"response": response}) == ANSWER
        session = talker.all("session.created")[0]["session"]
        await talker.send("session.finish")
        assert await talker.wait_closed() == 1000
    heard = await sound_of(talker)
    assert min(word_errors(words, heard) for words in (ANSWER, "I'm here.")) <= 1, heard
    deltas = talker.all("response.audio_transcript.delta")
    assert "".join(delta["delta"] for delta in deltas) == ANSWER
    assert not talker.all("response.text.delta")
    assert (session["modalities"], response["voice"]) == (["text", "audio"], session["voice"])
    assert response["metrics"]["first_audio_ms"] >= response["metrics"]["first_token_ms"]
    created = talker.all("conversation.item.created")
    assert created[1]["previous_item_id"] == created[0]["item"]["id"]
    row = await ours.row("SELECT * FROM realtime_turn WHERE session_id = ? AND ordinal = 1", session["id"])
    assert (row["user_text"], row["assistant_text"]) == ("Are you there?", ANSWER)
    assert row["output_audio_ms"] == round(len(talker.audio()) / 48)
    there = await theirs.row("SELECT DISTINCT output_audio_ms FROM realtime_turn")
    assert there == {"output_audio_ms": 0}


@EACH
async def test_only_what_was_heard_stays_in_the_conversation(
    ours: Product, chat_server: ChatServer, model: str
) -> None:
    """The service has long finished writing when its reply is cut off."""
    async with call(ours.url, ours.keys["good"], model=model) as talker:
        await talker.ask("Give me a speech.")
        await talker.wait("response.audio.delta", count=8)
        await talker.send("response.cancel")
        assert (await talker.wait("response.done"))["response"]["status"] == "cancelled"
        truncated = await talker.wait("conversation.item.truncated")
        assert truncated["unheard"]
        await talker.ask("Are you there?")
        assert answer_of(await talker.wait("response.done", count=2)) == ANSWER
    assert said_there(chat_server) == heard_here(truncated)
    assert not talker.all("error")
    assert not talker.all("conversation.item.deleted")


async def test_a_reply_that_is_cut_off_is_not_written_on(ours: Product, chat_server: ChatServer) -> None:
    async with call(ours.url, ours.keys["good"], model="native") as talker:
        await talker.ask("Tell me something endless.")
        await talker.wait("response.audio.delta", count=8)
        await talker.send("response.create", event_id="early")
        refused = (await talker.wait("error"))["error"]
        assert (refused["code"], refused["event_id"]) == ("conversation_already_has_active_response", "early")
        await talker.send("response.cancel")
        truncated = await talker.wait("conversation.item.truncated")
        sounds = len(talker.all("response.audio.delta"))
        await talker.ask("Are you there?")
        done = await talker.wait("response.done", count=2)
        assert answer_of(done) == ANSWER
    assert await has_happened(chat_server.left)
    assert said_there(chat_server) == heard_here(truncated)
    late = talker.all("response.audio.delta")[sounds:]
    assert {delta["response_id"] for delta in late} == {done["response"]["id"]}


async def test_a_caller_interrupts_by_speaking(ours: Product, chat_server: ChatServer, voices: Voices) -> None:
    async with call(ours.url, ours.keys["good"], model="native", has_microphone=True) as talker:
        await talker.ask("Give me a speech.")
        await talker.wait("response.audio.delta", count=8)
        await talker.say(voices("What is twelve times twelve?"))
        assert (await talker.wait("response.done"))["response"]["status"] == "cancelled"
        truncated = await talker.wait("conversation.item.truncated")
        assert answer_of(await talker.wait("response.done", count=2)) == ANSWER
    assert said_there(chat_server) == heard_here(truncated)


@EACH
async def test_tools_are_the_callers(ours: Product, model: str) -> None:
    async with call(ours.url, ours.keys["good"], model=model) as talker:
        await talker.send("session.update", session={"tools": [WEATHER]})
        await talker.ask("How is the weather?")
        done: Event = await talker.wait("response.function_call_arguments.done")
        assert (done["name"], done["arguments"]) == ("weather", '{"city": "Paris"}')
        await talker.wait("response.done")
        output = {"type": "function_call_output", "call_id": done["call_id"], "output": '{"degrees": 21}'}
        await talker.send("conversation.item.create", item=output)
        await talker.send("response.create")
        assert answer_of(await talker.wait("response.done", count=2)) == "It is 21 degrees."
    assert talker.audio()


async def test_a_session_finishes_when_its_reply_was_spoken(ours: Product, chat_server: ChatServer) -> None:
    chat_server.go_on.set()
    async with call(ours.url, ours.keys["good"], model="native") as talker:
        await talker.ask("Tell me a story.")
        await talker.send("session.finish")
        assert await talker.wait_closed() == 1000
    (done,) = talker.all("response.done")
    assert answer_of(done) == f"{FIRST}{SECOND}"
    assert talker.audio()
    assert talker.types[-1] == "session.finished"


async def test_a_response_can_be_text_alone(ours: Product) -> None:
    async with call(ours.url, ours.keys["good"], model="native") as talker:
        await talker.ask("Are you there?", modalities=["text"])
        done = await talker.wait("response.done")
    assert done["response"]["output"][0]["content"] == [{"type": "text", "text": ANSWER}]
    assert not talker.audio()


async def test_a_call_over_webrtc_hears_our_voice(ours: Product) -> None:
    async with webrtc.calling(ours.origin, ours.keys["good"], model="native") as caller:
        await caller.ask("Are you there?")
        assert answer_of(await caller.wait("response.done")) == ANSWER
        await caller.wait_loud()
        await caller.wait_quiet()


async def test_a_call_over_aoq_hears_our_voice(ours: Product, voices: Voices) -> None:
    async with aoq.calling(await aoq.granted(ours.origin, ours.keys["good"], model="newer")) as peer:
        await peer.say(voices("Are you there?"))
        assert answer_of(await peer.wait("response.done")) == ANSWER
        await peer.send("session.finish")
        assert await peer.wait_closed() == 1000
    heard = (await Moonshine().recognize(peer.speech())).text
    assert min(word_errors(words, heard) for words in (ANSWER, "I'm here.")) <= 1, heard
    assert not peer.all("error")


async def test_a_reply_that_fails_says_so_in_our_voice(ours: Product) -> None:
    """The last one here: the service takes no conversations for a while after that."""
    async with call(ours.url, ours.keys["good"], model="native") as talker:
        await talker.ask("Break off in the middle.")
        assert (await talker.wait("response.done"))["response"]["status"] == "failed"
    assert talker.audio()
    assert not talker.all("error")
