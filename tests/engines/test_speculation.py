"""Replies begun in a pause, by the cascade around small honest engines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.engines.test_cascade import LOUD, QUIET, WEATHER, Talk, talking
from voiceapp.engines.interfaces import AssistantDelta, ChatDelta, NextResponse, ToolCallDelta
from voiceapp.engines.models.lanes import lanes
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import TurnEnded

SHORT = bytes(8_000)
"""A quarter of a second of silence: a pause that may still end."""


@asynccontextmanager
async def pausing(**options: object) -> AsyncIterator[Talk]:
    """A caller who has said something and pauses; the turn model is not sure."""
    async with talking(speculates=True, **options) as talk:  # type: ignore[arg-type]
        talk.turns.probability = 0.0
        for pcm in (QUIET, LOUD, SHORT):
            await talk.stream.receive(ev.AudioAppend(audio=pcm))
        for _ in range(100):
            await asyncio.sleep(0)
        yield talk


async def end_turn(talk: Talk) -> None:
    await talk.stream.receive(ev.AudioAppend(audio=QUIET))


async def test_the_first_sentence_is_spoken_before_the_turn_ends_and_heard_after() -> None:
    async with pausing() as talk:
        assert talk.mouth.said == ["One sentence. "]
        assert talk.mouth.pieces == 1, "no more than the first sound"
        assert not talk.all(ev.ResponseCreated)
        assert not talk.all(ev.AudioDelta)

        await end_turn(talk)
        done = (await talk.wait(ev.ResponseDone)).response

        assert done["output"][0]["content"][0]["transcript"] == "One sentence. Another one."
        assert talk.audio_ms == pytest.approx(4 * 100 + 200, abs=1)
        assert len(talk.writer.requests) == 1
        assert (await talk.wait(TurnEnded)).status == "completed"


async def test_who_goes_on_hears_nothing_of_it_and_leaves_nothing() -> None:
    async with pausing() as talk:
        talk.writer.ended.clear()
        talk.writer.deltas = [ChatDelta(text="The true reply.")]
        talk.ear.words = "hello there again"
        await talk.stream.receive(ev.AudioAppend(audio=LOUD))
        async with asyncio.timeout(5):
            await talk.mouth.ended.wait()
        await end_turn(talk)
        done = (await talk.wait(ev.ResponseDone)).response

        assert done["output"][0]["content"][0]["transcript"] == "The true reply."
        assert len(talk.all(ev.ResponseCreated)) == 1
        assert not [event for event in talk.told if "One sentence" in str(event)]
        assert (await talk.wait(TurnEnded)).user_text == "hello there again"
        assert len(talk.all(TurnEnded)) == 1
        async with asyncio.timeout(5):
            await talk.stream.wait_idle()


@pytest.mark.parametrize("goes_on", [True, False])
async def test_what_was_sent_for_a_reply_that_is_dropped_is_counted_as_such(*, goes_on: bool) -> None:
    async with pausing(is_far=True) as talk:
        if goes_on:
            talk.ear.words = "hello there again"
            await talk.stream.receive(ev.AudioAppend(audio=LOUD))
        await end_turn(talk)
        await talk.wait(ev.ResponseDone)
        assert (await talk.wait(TurnEnded)).dropped_tokens == (3 if goes_on else 0)
        await talk.ask()
        assert (await talk.wait(TurnEnded, 2)).dropped_tokens == 0


async def test_a_model_elsewhere_is_asked_while_speech_has_to_wait() -> None:
    may_end = threading.Event()
    busy = [asyncio.create_task(lanes().voice.run(may_end.wait)) for _ in range(lanes().voice.threads)]
    await asyncio.sleep(0)
    try:
        async with pausing(is_far=True) as talk:
            assert talk.writer.requests
            assert not talk.mouth.said
            await end_turn(talk)
            assert (await talk.wait(ev.ResponseDone)).response["status"] == "completed"
            assert talk.mouth.said == ["One sentence. ", "Another one."]
    finally:
        may_end.set()
        await asyncio.gather(*busy)


async def test_function_calls_wait_until_the_turn_is_sure() -> None:
    async with talking(speculates=True) as talk:
        talk.turns.probability = 0.0
        await talk.stream.receive(ev.SessionUpdate(session={"tools": [WEATHER]}))
        talk.writer.deltas = [ChatDelta(tool_call=ToolCallDelta(0, "call_1", "weather", "{}"))]
        for pcm in (QUIET, LOUD, SHORT):
            await talk.stream.receive(ev.AudioAppend(audio=pcm))
        for _ in range(100):
            await asyncio.sleep(0)
        assert talk.writer.requests
        assert not talk.all(ev.OutputItemAdded)

        await end_turn(talk)

        (item,) = (await talk.wait(ev.ResponseDone)).response["output"]
        assert item["name"] == "weather"


async def test_a_budget_is_asked_only_when_the_turn_has_ended() -> None:
    asked: list[NextResponse] = []

    async def before_response(response: NextResponse) -> str:
        asked.append(response)
        return ""

    async with pausing(before_response=before_response) as talk:
        assert not asked
        assert not talk.writer.requests
        await end_turn(talk)
        await talk.wait(ev.ResponseDone)

    (response,) = asked
    assert response.ordinal == 1
    assert response.input_audio_ms > 1000


async def test_a_rate_that_nobody_heard_is_forgotten() -> None:
    async with talking(speculates=True) as talk:
        talk.turns.probability = 0.0
        talk.writer.deltas = [AssistantDelta(speech_rate=0.5), ChatDelta(text="Slowly.")]
        for pcm in (QUIET, LOUD, SHORT):
            await talk.stream.receive(ev.AudioAppend(audio=pcm))
        for _ in range(100):
            await asyncio.sleep(0)
        assert talk.mouth.rates == [0.5]
        talk.writer.deltas = [ChatDelta(text="As usual.")]
        await talk.stream.receive(ev.AudioAppend(audio=LOUD))
        await end_turn(talk)
        await talk.wait(ev.ResponseDone)

        assert talk.mouth.rates == [0.5, 1.0]


async def test_a_rate_that_was_heard_holds() -> None:
    async with talking(speculates=True) as talk:
        talk.writer.deltas = [AssistantDelta(speech_rate=0.5), ChatDelta(text="Slowly.")]
        for pcm in (QUIET, LOUD, SHORT):
            await talk.stream.receive(ev.AudioAppend(audio=pcm))
        await end_turn(talk)
        await talk.wait(ev.ResponseDone)
        talk.writer.deltas = [ChatDelta(text="Still.")]
        await talk.ask()
        await talk.wait(ev.ResponseDone, 2)

        assert talk.mouth.rates == [0.5, 0.5]


async def test_leaving_in_the_pause_ends_the_work() -> None:
    async with pausing() as talk:
        assert talk.stream.close() == []
    assert talk.mouth.ended.is_set()
    assert talk.writer.ended.is_set()


@pytest.mark.parametrize("is_far", [True, False])
async def test_a_reply_from_elsewhere_may_begin_with_a_short_clause(is_far: bool) -> None:
    async with talking(speculates=True, is_far=is_far) as talk:
        talk.writer.deltas = [ChatDelta(text="Good morning, my dear guests of this house. Come in.")]
        for count in (1, 2):
            await talk.ask()
            await talk.wait(ev.ResponseDone, count)
        first, later = "Good morning, my dear guests of this house. ", "Good morning, "
        assert (talk.mouth.said[0], talk.mouth.said[2]) == (first, later if is_far else first)
