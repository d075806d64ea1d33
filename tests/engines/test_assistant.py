"""The embedded assistant as a chat model: skills, documents, honesty, follow-ups."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.engines.word_embedder import WordEmbedder
from voiceapp.engines.assistant.chat import (
    IDLE_PROMPT,
    NO_MORE,
    OPENING,
    RetrievalAssistant,
)
from voiceapp.engines.assistant.documents import Folder
from voiceapp.engines.assistant.known_documents import NO_DOCUMENTS, ONLY_MANUAL
from voiceapp.engines.assistant.skills.unknown import QUESTION, STATEMENT
from voiceapp.engines.interfaces import AssistantDelta, ChatDelta, ChatMessage, ChatRequest, SessionFacts
from voiceapp.engines.models.lanes import lanes
from voiceapp.errors import EngineTimeout
from voiceapp.protocol.items import Author

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

    def __init__(self, assistant: RetrievalAssistant, **facts: Any) -> None:
        self.assistant = assistant
        self.facts = SessionFacts(**facts)
        self.messages: list[ChatMessage] = [ChatMessage("system", "You are a pirate.")]
        self.deltas: list[ChatDelta] = []

    async def say(self, text: str, **options: Any) -> str:
        self.messages.append(ChatMessage("user", text))
        return await self.respond(**options)

    async def respond(self, **options: Any) -> str:
        request = ChatRequest(messages=tuple(self.messages), facts=self.facts, **options)
        async with aclosing(self.assistant.stream(request)) as stream:
            self.deltas = [delta async for delta in stream]
        answer = "".join(delta.text for delta in self.deltas)
        self.messages.append(ChatMessage("assistant", answer))
        return answer


async def test_a_skill_comes_first_and_in_the_callers_zone(assistant: RetrievalAssistant) -> None:
    assert await Talk(assistant, time_zone="America/New_York").say("What time is it?") == "It is 7 a.m."
    assert await Talk(assistant).say("What time is it?") == "It is 12 p.m."


@pytest.mark.parametrize("zone", ["Not/AZone", "../../etc/passwd", "", "/"])
async def test_a_zone_that_is_none_is_the_installations(assistant: RetrievalAssistant, zone: str) -> None:
    assert await Talk(assistant, time_zone=zone).say("What time is it?") == "It is 12 p.m."


async def test_without_any_zone_it_tells_utc(assistant: RetrievalAssistant, settings: Any) -> None:
    settings.LOCAL_TIME_ZONE = "Not/AZone"
    assert await Talk(assistant).say("What time is it?") == "It is 12 p.m."


async def test_a_document_is_quoted_with_its_name(assistant: RetrievalAssistant) -> None:
    answer = await Talk(assistant).say("When is the front door locked?")
    assert answer == (
        "From House rules: The front door is locked at ten in the evening. Guests may ring the bell after that."
    )


async def test_a_reply_that_goes_on_does_not_set_its_timer_again(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant, started_at=0.0)
    await talk.say("Set a timer for one minute.")
    assert any(isinstance(delta, AssistantDelta) and delta.reminders for delta in talk.deltas)
    await talk.respond()
    assert not any(isinstance(delta, AssistantDelta) and delta.reminders for delta in talk.deltas)


async def test_an_answer_that_was_cut_off_goes_on_where_it_was_heard(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    talk.messages.append(ChatMessage("user", "When is the front door locked?"))
    talk.messages.append(
        ChatMessage("assistant", "From House rules: The front door is  locked at ten in the evening.\n")
    )
    assert await talk.respond() == "Guests may ring the bell after that."
    assert await talk.respond() == ""


async def test_an_answer_that_would_be_another_by_now_is_given_whole(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    talk.messages.append(ChatMessage("user", "What time is it?"))
    talk.messages.append(ChatMessage("assistant", "It is 11 a.m."))
    assert await talk.respond() == "It is 12 p.m."


async def test_the_answer_comes_in_sentences_and_ends_with_reason_and_usage(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    await talk.say("When is the front door locked?")
    written_by, source, *pieces, last = talk.deltas
    assert written_by.author == Author("document")
    assert isinstance(source, AssistantDelta)
    assert source.source is not None
    assert source.source.title == "House rules"
    assert len(pieces) == 2
    assert all(piece.text and piece.finish_reason is None for piece in pieces)
    assert last.finish_reason == "stop"
    assert last.text == ""
    assert last.usage is not None
    assert last.usage.output_tokens > 15
    assert last.usage.input_tokens > 5


async def test_a_fact_is_a_skills_and_has_its_source(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    await talk.say("capital of peru")
    written_by, source, *_ = talk.deltas
    assert written_by.author == Author("skill")
    assert isinstance(source, AssistantDelta)
    assert source.source is not None
    assert source.source.title == "GeoNames"


async def test_an_answer_can_be_limited(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    assert await talk.say("When is the front door locked?", max_tokens=4) == "From House rules:"
    assert talk.deltas[-1].finish_reason == "length"
    assert talk.deltas[-1].usage is not None
    assert talk.deltas[-1].usage.output_tokens == 4


async def test_it_is_honest_in_one_short_sentence_and_not_twice_in_the_same(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    assert await talk.say("Who painted Guernica?") == QUESTION[0]
    assert await talk.say("What is the capital of Atlantis?") == QUESTION[1]
    assert await talk.say("What time is it?") == "It is 12 p.m."
    assert await talk.say("Who wrote Dune?") == QUESTION[2]
    assert await talk.say("The cat has been in the garden.") == STATEMENT[0]
    assert await talk.say("It came back.") == STATEMENT[1]


async def test_a_follow_up_keeps_the_topic(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    await talk.say("Where is breakfast served?")
    await talk.say("Thanks.")
    assert "It begins at seven." in await talk.say("And when does it begin?")
    assert await talk.say("What about elephants?") == QUESTION[0]


async def test_more_goes_on_and_then_ends(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    first = await talk.say("Where is breakfast served?")
    assert first == "From House rules: Breakfast is served in the garden room. It begins at seven."
    assert await talk.say("Tell me more.") == "From House rules: Coffee is free all day."
    assert await talk.say("Go on") == NO_MORE


async def test_it_says_which_documents_it_replies_from(assistant: RetrievalAssistant, tmp_path: Path) -> None:
    talk = Talk(assistant)
    assert await talk.say("Which documents do you know?") == "I reply from one document: House rules."
    for number in range(6):
        (tmp_path / "documents" / f"z{number}.md").write_text(f"# Page {number}\n\nIt says something.\n")
    manual = tmp_path / "manual"
    manual.mkdir()
    (manual / "01-what-it-is.md").write_text("# What it is\n\nIt is a program.\n")
    folders = [Folder(manual, is_manual=True), Folder(tmp_path / "documents")]
    several = RetrievalAssistant(folders=folders, embedder=WordEmbedder(), cache_dir=tmp_path / "cache")
    assert await Talk(several).say("What documents have you read?") == (
        "I reply from 7 documents: House rules, Page 0, Page 1, Page 2, Page 3, and 2 more. "
        "I also know the manual of this program."
    )
    alone = RetrievalAssistant(folders=folders[:1], embedder=WordEmbedder(), cache_dir=tmp_path / "cache")
    assert await Talk(alone).say("Can you list your documents please") == ONLY_MANUAL
    none = RetrievalAssistant(folders=[], embedder=WordEmbedder(), cache_dir=tmp_path / "cache")
    assert await Talk(none).say("Do you have any documents?") == NO_DOCUMENTS
    assert await Talk(none).say("Which documents do I need to travel?") == QUESTION[0]


async def test_repeating_gives_what_was_heard(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    await talk.say("When is the front door locked?")
    talk.messages[-1] = ChatMessage("assistant", "From House rules: The front door")
    assert await talk.say("Say that again.") == "From House rules: The front door"


async def test_a_change_of_pace_is_told_before_the_words(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant, speech_rate=1.0)
    await talk.say("Please speak slower.")
    assert talk.deltas[0] == AssistantDelta(speech_rate=0.83)


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


async def test_it_remembers_the_latest_messages(assistant: RetrievalAssistant) -> None:
    talk = Talk(assistant)
    await talk.say("My name is Ann.")
    await talk.say("Put milk and bread on my shopping list.")
    assert await talk.say("What is my name?") == "Your name is Ann."
    for _ in range(17):
        await talk.say("Okay.")
    assert await talk.say("Read my list.") == "On your list: milk and bread."
    assert await talk.say("What was my first question?") == "You said: My name is Ann."
    assert await talk.say("How many questions have I asked?") == "This is turn number 23."
    assert await talk.say("What is my name?") == "You have not told me your name yet."


async def test_a_reply_has_a_time_limit(tmp_path: Path) -> None:
    assistant = RetrievalAssistant(folders=[], cache_dir=tmp_path, embedder=WordEmbedder(), patience_s=0.05)
    gate = threading.Event()
    busy = asyncio.create_task(lanes().reply.run(gate.wait, 30))
    await asyncio.sleep(0)
    with pytest.raises(EngineTimeout, match="try again"):
        await Talk(assistant).say("What time is it?")
    gate.set()
    assert await busy
    assert (await Talk(assistant).say("What time is it?")).startswith("It is")


async def test_it_answers_about_this_product_by_default(models: None, tmp_path: Path) -> None:
    answer = await Talk(RetrievalAssistant(cache_dir=tmp_path)).say("How do I revoke an API key?")
    assert answer.startswith("From the manual, API keys: ")
    assert "Revoke" in answer
