"""The embedded assistant as a chat model: skills, documents, honesty, follow-ups."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.engines.word_embedder import WordEmbedder
from voiceapp.engines.embedded.chat import IDLE_PROMPT, NO_MORE, NOT_FOUND, OPENING, RetrievalAssistant
from voiceapp.engines.embedded.documents import Folder
from voiceapp.engines.interfaces import ChatDelta, ChatMessage, ChatRequest

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=ZoneInfo("UTC"))

HOUSE = """# House rules

The front door is locked at ten in the evening. Guests may ring the bell after that.

Breakfast is served in the garden room. It begins at seven. Coffee is free all day.
"""


def at_noon(zone: tzinfo) -> datetime:
    return NOON.astimezone(zone)


@pytest.fixture
def assistant(tmp_path: Path) -> RetrievalAssistant:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "house.md").write_text(HOUSE)
    return RetrievalAssistant(
        folders=[Folder(folder)], embedder=WordEmbedder(), cache_dir=tmp_path / "cache", clock=at_noon
    )


class Talk:
    """A conversation that remembers both sides."""

    def __init__(self, assistant: RetrievalAssistant, **context: Any) -> None:
        self.assistant = assistant
        self.context = context
        self.messages: list[ChatMessage] = [ChatMessage("system", "You are a pirate.")]
        self.deltas: list[ChatDelta] = []

    async def say(self, text: str, **options: Any) -> str:
        self.messages.append(ChatMessage("user", text))
        return await self.respond(**options)

    async def respond(self, **options: Any) -> str:
        request = ChatRequest(messages=tuple(self.messages), context=self.context, **options)
        async with aclosing(self.assistant.stream(request)) as stream:
            self.deltas = [delta async for delta in stream]
        answer = "".join(delta.text for delta in self.deltas)
        self.messages.append(ChatMessage("assistant", answer))
        return answer


async def test_a_skill_comes_first_and_in_the_callers_zone(assistant: RetrievalAssistant) -> None:
    assert await Talk(assistant, time_zone="America/New_York").say("What time is it?") == "It is 7 a.m."
    assert await Talk(assistant).say("What time is it?") == "It is 12 p.m."


@pytest.mark.parametrize("zone", ["Not/AZone", "../../etc/passwd", "", "/", 5])
async def test_a_zone_that_is_none_is_the_installations(assistant: RetrievalAssistant, zone: object) -> None:
    assert await Talk(assistant, time_zone=zone).say("What time is it?") == "It is 12 p.m."


async def test_without_any_zone_it_tells_utc(assistant: RetrievalAssistant, settings: Any) -> None:
    settings.LOCAL_TIME_ZONE = "Not/AZone"
    assert await Talk(assistant).say("What time is it?") == "It is 12 p.m."


async def test_a_document_is_quoted_with_its_name(assistant: RetrievalAssistant) -> None:
    answer = await Talk(assistant).say("When is the front door locked?")
    assert answer == (
        "From House rules: The front door is locked at ten in the evening. Guests may ring the bell after that."
    )


async def test_the_answer_comes_in_sentences_and_ends_with_reason_and_usage(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    await talk.say("When is the front door locked?")
    *pieces, last = talk.deltas
    assert len(pieces) == 2
    assert all(piece.text and piece.finish_reason is None for piece in pieces)
    assert last.finish_reason == "stop"
    assert last.text == ""
    assert last.usage is not None
    assert last.usage.output_tokens > 15
    assert last.usage.input_tokens > 5


async def test_an_answer_can_be_limited(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    assert await talk.say("When is the front door locked?", max_tokens=4) == "From House rules:"
    assert talk.deltas[-1].finish_reason == "length"
    assert talk.deltas[-1].usage is not None
    assert talk.deltas[-1].usage.output_tokens == 4


async def test_it_is_honest_in_full_once_and_short_after_that(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    first = await talk.say("Who won the world cup?")
    assert first.startswith(NOT_FOUND)
    assert "language model" in first
    assert await talk.say("Who wrote Hamlet?") == NOT_FOUND


async def test_in_writing_it_says_what_to_set(assistant: RetrievalAssistant) -> None:
    assert "CHAT_BASE_URL" in await Talk(assistant, spoken=False).say("Who won the world cup?")
    assert "CHAT_BASE_URL" not in await Talk(assistant, spoken=True).say("Who won the world cup?")


async def test_a_follow_up_keeps_the_topic(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    await talk.say("Where is breakfast served?")
    await talk.say("Thanks.")
    assert "It begins at seven." in await talk.say("And when does it begin?")
    assert (
        await talk.say("What about elephants?")
        == f"{NOT_FOUND} " + (await Talk(assistant).say("xyzzy"))[len(NOT_FOUND) + 1 :]
    )


async def test_more_goes_on_and_then_ends(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    first = await talk.say("Where is breakfast served?")
    assert first == "From House rules: Breakfast is served in the garden room. It begins at seven."
    assert await talk.say("Tell me more.") == "From House rules: Coffee is free all day."
    assert await talk.say("Go on") == NO_MORE


async def test_repeating_gives_what_was_heard(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    await talk.say("When is the front door locked?")
    talk.messages[-1] = ChatMessage("assistant", "From House rules: The front door")
    assert await talk.say("Say that again.") == "From House rules: The front door"


async def test_a_change_of_pace_is_told_before_the_words(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant, speech_rate=1.0)
    await talk.say("Please speak slower.")
    assert talk.deltas[0] == ChatDelta(speech_rate=0.83)


async def test_it_opens_a_conversation_when_nobody_spoke(assistant: RetrievalAssistant) -> None:
    assert await Talk(assistant).respond() == OPENING
    assert await Talk(assistant, is_idle_prompt=True).say("What time is it?") == IDLE_PROMPT


async def test_the_same_seed_throws_the_same_dice(assistant: RetrievalAssistant) -> None:
    rolls = {await Talk(assistant).say("roll six dice", seed=11) for _ in range(5)}
    assert len(rolls) == 1


async def test_function_tools_are_left_alone(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    tool = {"type": "function", "function": {"name": "time", "parameters": {"type": "object"}}}
    assert await talk.say("What time is it?", tools=(tool,)) == "It is 12 p.m."
    assert all(delta.tool_call is None for delta in talk.deltas)


async def test_a_first_question_waits_for_the_index_and_the_loop_does_not(assistant: RetrievalAssistant) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await assistant.warm()
    assert "garden room" in await Talk(assistant).say("Where is breakfast served?")
    ticking.cancel()
    assert ticks > 10


async def test_it_answers_about_this_product_by_default(models: None, tmp_path: Path) -> None:
    answer = await Talk(RetrievalAssistant(cache_dir=tmp_path)).say("How do I create an API key?")
    assert answer.startswith("From the manual, API keys: ")
    assert "createkey" in answer
