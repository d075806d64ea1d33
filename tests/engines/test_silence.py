"""What a caller hears when the model that replies is slow, odd or gone. Deadlines are a twentieth of the usual ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from pytest_django.fixtures import Settings

from tests.clock import Clock
from tests.engines.test_cascade import LOUD, QUIET, WEATHER, Talk, talking
from tests.mind import Habit, Mind, mind
from tests.web import Handler, listening
from voiceapp.catalogue.cards import ModelCard
from voiceapp.engines.interfaces import (
    Call,
    ChatDelta,
    ChatMessage,
    ChatRequest,
    NextResponse,
    Recognition,
    Samples,
    ToolCallDelta,
    Voice,
)
from voiceapp.engines.models.fallback import ConversationRecognizer, ConversationSynthesizer, FallbackChat, Link
from voiceapp.engines.openai.chat import OpenAIChat
from voiceapp.engines.openai.speech import OpenAISpeech
from voiceapp.engines.openai.transcription import OpenAIRecognizer
from voiceapp.engines.upstream.http.breaker import MOST_FAILURES
from voiceapp.engines.upstream.http.client import Address, CircuitOpen, UpstreamServer
from voiceapp.errors import EngineError
from voiceapp.http.error_responses import error_response_of
from voiceapp.protocol.speaking import stock_replies
from voiceapp.protocol.speaking.stock_replies import StockReply, stock_reply
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import TurnEnded

FIRST_WORD_S = 0.5
WHOLE = Habit().text
SILENT = Habit(first_token_s=60)
SORRY, CUT_OFF = "I am sorry, I cannot answer right now.", "I am sorry, I cannot go on."
FILLERS = {stock_reply(StockReply.FILLER, "en", number) for number in range(4)}
LONGER = {stock_reply(StockReply.LONGER, "en", number) for number in range(3)}


HELLO = ChatRequest((ChatMessage("user", "Hello"),))


@pytest.fixture(autouse=True)
def _soon(settings: Settings) -> None:
    settings.CHAT_FIRST_WORD_S = FIRST_WORD_S


def model(server: Mind, **options: Any) -> OpenAIChat:
    return OpenAIChat(base_url=server.base_url, model="stub", timeout_s=60, **options)


@asynccontextmanager
async def asked(*habits: Habit, then: Habit | None = None, is_loaded: bool = True) -> AsyncIterator[tuple[Talk, Mind]]:
    """A conversation with a model of these habits; with `then` another one stands in for it."""
    async with mind(*habits) as server, mind(then or Habit()) as other:
        chat: Any = model(server)
        models = [chat]
        if then:
            models.append(model(other))
            cards = [ModelCard(name, "chat", "some.where", service="acme") for name in ("first", "second")]
            chat = FallbackChat([Link(card, each) for card, each in zip(cards, models, strict=True)])
        for each in (server, other) if is_loaded else ():
            each.habits.insert(0, Habit())
        for each in models if is_loaded else ():
            async for _ in each.stream(HELLO):  # a server on this network may have to load its model first
                pass
        for each in (server, other):
            each.requests.clear()
            each.habits = each.habits[is_loaded:]
        async with talking(chat=chat) as talk:
            yield talk, server
        for each in models:
            await each.close()


def said(talk: Talk) -> str:
    return "".join(talk.mouth.said)


def transcript(response: dict[str, Any]) -> str:
    return "".join(part["transcript"] for item in response["output"] for part in item.get("content", ()))


@dataclass(frozen=True)
class Case:
    """Habits of the model, and the reply that comes of them."""

    habits: tuple[Habit, ...]
    transcript: str
    status: str = "completed"
    requests: int = 1
    fills: bool | None = False
    """A filler is spoken before the reply; None where a second attempt may take as long."""


CASES = {
    "500": Case((Habit(status=500), Habit()), WHOLE, requests=2, fills=None),
    "503": Case((Habit(status=503), Habit()), WHOLE, requests=2, fills=None),
    "429": Case((Habit(status=429, headers={"Retry-After": "0"}), Habit()), WHOLE, requests=2),
    "429 for long": Case((Habit(status=429, headers={"Retry-After": "30"}), Habit()), SORRY, "failed"),
    "twice 500": Case((Habit(status=500),), SORRY, "failed", requests=2, fills=None),
    "breaks before its first word": Case((Habit(breaks_after=0), Habit()), WHOLE, requests=2, fills=None),
    "writes nothing": Case((SILENT,), SORRY, "failed", fills=True),
    "needs long": Case((Habit(first_token_s=0.3 * FIRST_WORD_S),), WHOLE, fills=True),
    "thinks": Case((Habit(thoughts=15, words_per_s=20),), WHOLE, fills=True),
    "thinks in tags": Case((Habit(text=f"<think>It is \n Lyon</thin?</think>\n\n{WHOLE}", by_character=True),), WHOLE),
    "is not thinking": Case((Habit(text="<thin ice>", by_character=True),), "<thin ice>"),
    "stops after four words": Case(
        (Habit(stops_after=4), Habit(text="of France. It lies on the Seine.")), WHOLE, requests=2
    ),
    "breaks after four words": Case((Habit(breaks_after=4), Habit()), WHOLE, requests=2),
    "repeats its last sentence": Case(
        (Habit(text=f"{WHOLE} It is old.", breaks_after=12), Habit(text="It lies on the Seine. It is old.")),
        f"{WHOLE} It is old.",
        requests=2,
    ),
    "breaks in Chinese": Case(
        (Habit(text="巴黎是 x", breaks_after=1), Habit(text="法国的首都。")), "巴黎是法国的首都。", requests=2
    ),
    "stops twice": Case((Habit(stops_after=4), SILENT), f"Paris is the capital… {CUT_OFF}", "failed", requests=2),
    "ends without a word": Case((Habit(text=""),), SORRY, "failed"),
    "is filtered": Case((Habit(text="", finish="content_filter"),), "I cannot say anything about that.", "incomplete"),
    "calls what does not exist": Case((Habit(calls="explode"),), SORRY, "failed"),
    "refuses max_tokens": Case((Habit(refuses="max_tokens"),), WHOLE, requests=2),
    "refuses temperature": Case((Habit(refuses="temperature"),), WHOLE, requests=2),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_caller_hears_a_reply_or_why_there_is_none(case: Case) -> None:
    async with asked(*case.habits) as (talk, server):
        await talk.stream.receive(
            ev.SessionUpdate(session={"temperature": 0.4, "max_tokens": 90, "tools": [WEATHER]})
            if any(habit.refuses or habit.calls for habit in case.habits)
            else ev.SessionUpdate(session={})
        )
        await talk.ask()
        done = (await talk.wait(ev.ResponseDone)).response

        assert (transcript(done), done["status"]) == (case.transcript, case.status)
        assert len(server.requests) == case.requests
        assert case.fills in (None, talk.mouth.said[0] in FILLERS)
        assert ("error" in (done["status_details"] or {})) == (case.status == "failed")


async def test_fillers_vary_and_are_no_part_of_what_the_model_reads_later(settings: Settings) -> None:
    settings.CHAT_FIRST_WORD_S = 2 * FIRST_WORD_S
    async with asked(Habit(thoughts=32, words_per_s=20), Habit()) as (talk, server):
        for number in range(2):
            await talk.ask()
            assert transcript((await talk.wait(ev.ResponseDone, number + 1)).response) == WHOLE
        first, *later = [text for text in talk.mouth.said if text in FILLERS | LONGER]
        assert first in FILLERS
        assert len(later) >= 2
        assert LONGER.issuperset(later)
        assert all(one != other for one, other in pairwise(later))
        assert not any(text in str(server.requests) or text in str(talk.told) for text in (first, *later))


async def test_a_filler_is_in_the_language_of_the_session_and_may_be_forbidden(settings: Settings) -> None:
    async with asked(SILENT) as (talk, _):
        await talk.stream.receive(ev.SessionUpdate(session={"input_audio_transcription": {"language": "de"}}))
        await talk.ask()
        await talk.wait(ev.ResponseDone)
        assert talk.mouth.said[0] in {stock_reply(StockReply.FILLER, "de", number) for number in range(4)}
    settings.CHAT_FILLERS = False
    async with asked(SILENT) as (talk, _):
        await talk.ask()
        await talk.wait(ev.ResponseDone)
        assert talk.mouth.said == [SORRY]


def test_every_sentence_of_ours_is_there_in_the_same_languages() -> None:
    known = {frozenset(sentences) for sentences in stock_replies._SENTENCES.values()}
    assert len(known) == 1


async def test_what_the_caller_says_ends_the_wait() -> None:
    async with asked(SILENT, Habit()) as (talk, server):
        await talk.ask()
        await talk.wait(ev.AudioDelta)
        for pcm in (LOUD, LOUD, QUIET):
            await talk.stream.receive(ev.AudioAppend(audio=pcm))
        first, second = [(await talk.wait(ev.ResponseDone, number)).response for number in (1, 2)]
        assert (first["status"], second["status"]) == ("cancelled", "completed")
        assert transcript(second) == WHOLE
        assert server.left == 1


@pytest.mark.parametrize("habit", [SILENT, Habit(status=500), Habit(breaks_after=0), Habit(thoughts=3, breaks_after=0)])
async def test_the_next_of_a_chain_replies(habit: Habit) -> None:
    begun = time.monotonic()
    async with asked(habit, then=Habit(text="It is Paris.")) as (talk, _):
        await talk.ask()
        done = (await talk.wait(ev.ResponseDone)).response
        assert (transcript(done), done["status"]) == ("It is Paris.", "completed")
        assert done["metrics"]["served_by"] == "acme/second"
        assert habit is not SILENT or (await talk.wait(TurnEnded)).dropped_tokens > 0, "the other one was sent the same"
        assert time.monotonic() - begun < 30, "and not after the timeout of the first"


async def test_of_two_that_are_asked_beside_one_another_the_first_to_write_wins() -> None:
    async with asked(Habit(first_token_s=0.6 * FIRST_WORD_S), then=SILENT) as (talk, _):
        await talk.ask()
        done = (await talk.wait(ev.ResponseDone)).response
        assert (transcript(done), done["metrics"]["served_by"]) == (WHOLE, "acme/first")
        assert (await talk.wait(TurnEnded)).dropped_tokens > 0, "the other one was sent the same"


async def test_the_first_may_still_reply_where_one_beside_it_thinks_and_fails() -> None:
    first = Habit(first_token_s=0.8 * FIRST_WORD_S)
    async with asked(first, then=Habit(thoughts=2, words_per_s=20, breaks_after=0)) as (talk, server):
        await talk.ask()
        done = (await talk.wait(ev.ResponseDone)).response
        assert (transcript(done), done["metrics"]["served_by"]) == (WHOLE, "acme/first")
        assert len(server.requests) == 1


async def test_slow_words_are_spoken_before_a_clause_is_whole() -> None:
    slow = Habit(text="I think that the most of it is known by now to all of us here", words_per_s=12)
    async with asked(slow) as (talk, _):
        await talk.ask()
        assert (await talk.wait(ev.ResponseDone)).response["status"] == "completed"
        assert len(talk.mouth.said) > 1
        assert said(talk) == slow.text


async def test_a_spoken_reply_without_a_limit_ends_with_a_sentence_after_300_tokens() -> None:
    endless = Habit(text=f"It goes on{' and on' * 38}. " * 8)
    async with asked(endless) as (talk, _):
        await talk.ask()
        done = (await talk.wait(ev.ResponseDone)).response
        assert done["status"] == "incomplete"
        assert done["status_details"]["reason"] == "max_output_tokens"
        assert 1200 < len(transcript(done)) < 1500
        assert transcript(done).endswith("on.")
        assert 300 < done["usage"]["output_tokens_details"]["text_tokens"] < 380
        await talk.stream.receive(ev.SessionUpdate(session={"max_tokens": 4000}))
        await talk.ask()
        done = (await talk.wait(ev.ResponseDone, 2)).response
        assert transcript(done).strip() == endless.text.strip()


async def test_a_function_call_after_many_words_is_made() -> None:
    tool = {"type": "function", "function": {"name": "light", "parameters": {"type": "object"}}}
    async with talking() as talk:
        call = ToolCallDelta(0, "call_1", "light", "{}")
        talk.writer.deltas = [ChatDelta(text=f"It goes on{' and on' * 70}. " * 3), ChatDelta(tool_call=call)]
        await talk.stream.receive(ev.SessionUpdate(session={"tools": [tool]}))
        await talk.ask()
        done = (await talk.wait(ev.ResponseDone)).response
        assert [item["type"] for item in done["output"]] == ["message", "function_call"]


async def test_the_time_that_a_ledger_takes_is_not_the_models() -> None:
    async def before_response(_: NextResponse) -> str:
        await asyncio.sleep(1.2 * FIRST_WORD_S)
        return ""

    async with talking(before_response) as talk:
        await talk.ask()
        assert (await talk.wait(ev.ResponseDone)).response["status"] == "completed"
        assert not FILLERS & set(talk.mouth.said)


async def test_no_filler_stands_in_the_middle_of_a_reply_and_both_parts_are_counted() -> None:
    broken = Habit(stops_after=4)
    async with asked(broken, Habit(text="of France.", first_token_s=0.4 * FIRST_WORD_S)) as (talk, _):
        await talk.ask()
        done = (await talk.wait(ev.ResponseDone)).response
        assert done["usage"]["input_tokens_details"]["text_tokens"] > 8
        assert not FILLERS & set(talk.mouth.said)


async def test_too_long_a_conversation_loses_its_oldest_exchanges_and_the_bound_is_learnt() -> None:
    async with asked(Habit(reads_bytes=2000)) as (talk, server):
        for number in range(3):
            await talk.ask(f"Question {number}: " + "why and how? " * 60)
            assert transcript((await talk.wait(ev.ResponseDone, number + 1)).response) == WHOLE
        refused, again = server.requests[-2], server.requests[-1]
        assert len(again["messages"]) < len(refused["messages"])
        assert "Question 2" in str(again)
        count = len(server.requests)
        await talk.ask("And now?")
        assert transcript((await talk.wait(ev.ResponseDone, 4)).response) == WHOLE
        assert len(server.requests) == count + 1, "what the server reads is known now"


async def test_what_was_refused_once_is_not_sent_again() -> None:
    request = ChatRequest((ChatMessage("user", "Hello"),), max_tokens=9, temperature=0.5)
    async with mind(Habit(refuses="max_tokens"), Habit(refuses="temperature")) as server:
        chat = model(server)
        for _ in range(2):
            assert "".join([delta.text async for delta in chat.stream(request)]) == WHOLE
        await chat.close()
        assert [set(body) & {"max_tokens", "max_completion_tokens", "temperature"} for body in server.requests] == [
            {"max_tokens", "temperature"},
            {"max_completion_tokens", "temperature"},
            {"max_completion_tokens"},
            {"max_completion_tokens"},
        ]


async def test_a_value_that_is_wrong_is_the_callers_to_correct() -> None:
    said = {"error": {"message": "temperature must be at most 2."}}
    async with mind(Habit(status=400, body=said)) as server:
        chat = model(server)
        with pytest.raises(EngineError, match="at most 2"):
            async for _ in chat.stream(ChatRequest((ChatMessage("user", "Hello"),), temperature=3.0)):
                pass
        await chat.close()
        assert len(server.requests) == 1


async def test_a_conversation_that_opens_has_a_connection_for_its_first_reply() -> None:
    async with mind(Habit()) as server:
        chat = model(server)
        await chat.prepare(Call("sess_1", "voice"))
        await server.was_asked.wait()
        opened = set(server.ports)
        assert "".join([delta.text async for delta in chat.stream(HELLO)]) == WHOLE
        await chat.close()
        assert server.ports == opened


async def test_a_server_of_ones_own_loads_its_model_before_the_first_caller() -> None:
    async with mind(Habit(), Habit(first_token_s=1.5 * FIRST_WORD_S)) as server:
        chat = model(server)
        await chat.prepare(Call("sess_1", "voice"))
        async with asyncio.timeout(10):
            await server.was_asked.wait()
        assert server.requests[0]["max_tokens"] == 1
        await chat.close()
    async with asked(Habit(first_token_s=1.5 * FIRST_WORD_S), is_loaded=False) as (talk, _):
        await talk.ask()
        done = (await talk.wait(ev.ResponseDone)).response
        assert (transcript(done), done["status"]) == (WHOLE, "completed"), "it was waited for longer than for others"


# ── Speech of other servers ───────────────────────────────────────────────────────────────────────────────────────────

SOON_S = 0.1
AUDIO = np.zeros(1600, dtype=np.float32)


class Here:
    languages = ("en",)
    voices = (Voice("joe", "Joe"),)
    default_voice = "joe"

    async def speak(self, text: str, **_: Any) -> AsyncGenerator[bytes, None]:
        yield b"here"

    async def recognize(self, audio: Samples, **_: Any) -> Recognition:
        return Recognition("here")


def links(there: Any) -> list[Link]:
    return [Link(ModelCard(name, "tts", "some.where"), each) for name, each in (("there", there), ("here", Here()))]


async def _hangs(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def _stops(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "audio/pcm"})
    await response.prepare(request)
    await response.write(bytes(9600))
    return await _hangs(request)


async def _says_nothing(request: web.Request) -> web.StreamResponse:
    return web.Response(content_type="audio/pcm")


async def _is_a_page(request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>" + "Welcome! " * 99, content_type="text/html")


async def _speaks(request: web.Request) -> web.StreamResponse:
    return web.Response(body=bytes(9600), content_type="audio/pcm")


@pytest.mark.parametrize("habit", [_hangs, _stops, _says_nothing, _is_a_page])
async def test_the_voice_here_speaks_what_a_server_does_not(habit: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("beside_s", "gap_s"):
        monkeypatch.setattr(ConversationSynthesizer, name, SOON_S)
    async with listening(web.post("/v1/audio/speech", habit)) as origin:
        there = OpenAISpeech(base_url=f"{origin}/v1", timeout_s=60)
        mouth = ConversationSynthesizer(links(there), session_id="sess_1")
        for _ in range(2):  # and keeps to that voice
            async with asyncio.timeout(10):
                sound = [pcm async for pcm in mouth.speak("Hello.", voice="alloy", sample_rate_hz=24_000)]
            assert sound[-1] == b"here"
        assert sound == [b"here"]
        await there.close()


async def test_a_server_that_speaks_is_heard_to_its_end() -> None:
    async with listening(web.post("/v1/audio/speech", _speaks)) as origin:
        there = OpenAISpeech(base_url=f"{origin}/v1", timeout_s=60)
        mouth = ConversationSynthesizer(links(there), session_id="sess_1")
        sound = [pcm async for pcm in mouth.speak("Hello.", voice="alloy", sample_rate_hz=24_000)]
        assert b"".join(sound) == bytes(9600)
        await there.close()


@pytest.mark.parametrize("habit", [_hangs, _is_a_page])
async def test_recognition_here_reads_what_a_server_does_not(habit: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConversationRecognizer, "beside_s", SOON_S)
    async with listening(web.post("/v1/audio/transcriptions", habit)) as origin:
        there = OpenAIRecognizer(base_url=f"{origin}/v1", timeout_s=60)
        async with asyncio.timeout(10):
            assert (await ConversationRecognizer(links(there), session_id="sess_1").recognize(AUDIO)).text == "here"
        await there.close()


# ── A service that is back ───────────────────────────────────────────────────────────────────────────────────────────


async def test_all_wait_for_the_one_request_that_tries_whether_a_service_is_back() -> None:
    is_back, is_tried = asyncio.Event(), asyncio.Event()
    asked = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if asked <= MOST_FAILURES:
            return web.Response(status=500)
        is_tried.set()
        await is_back.wait()
        return web.json_response({"fine": True})

    clock = Clock(1000.0)
    async with listening(web.post("/x", answer)) as origin:
        server = UpstreamServer(Address(origin, "key"), now=clock)
        for _ in range(MOST_FAILURES):
            with pytest.raises(EngineError):
                await server.ask("/x", {}, limit=1000)
        with pytest.raises(CircuitOpen):
            await server.ask("/x", {}, limit=1000)
        clock.now += 10
        six = [asyncio.create_task(server.ask("/x", {}, limit=1000)) for _ in range(6)]
        await is_tried.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert asked == MOST_FAILURES + 1, "one tries, and five wait"
        is_back.set()
        assert await asyncio.gather(*six) == [{"fine": True}] * 6
        await server.close()


async def test_429_of_a_chat_server_is_429_here() -> None:
    async with mind(Habit(status=429, headers={"Retry-After": "7"})) as server:
        chat = model(server)
        with pytest.raises(EngineError) as caught:
            async for _ in chat.stream(HELLO):
                pass
        await chat.close()
    found = error_response_of(caught.value)
    assert (found.status, found.headers["Retry-After"]) == (429, "7")
