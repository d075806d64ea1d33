"""A language model that is given the documents as numbered sources, and says which of them it used."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engines.test_assistant import HOUSE
from tests.engines.word_embedder import WordEmbedder
from voiceapp.catalogue.cards import ChatCapabilities, ModelCard
from voiceapp.catalogue.defaults import LocalModelSettings, chat_cards
from voiceapp.catalogue.servers import ServerSettings
from voiceapp.engines.assistant.chat import RetrievalAssistant
from voiceapp.engines.assistant.documents import Folder
from voiceapp.engines.assistant.reading import ReadingChat
from voiceapp.engines.interfaces import AssistantDelta, ChatDelta, ChatMessage, ChatRequest, Provider, SessionFacts
from voiceapp.engines.models.providers import providers

ASKED = "When is the front door locked?"
LOCKED = "The front door is locked at ten in the evening. Guests may ring the bell after that."
IN_A_CONVERSATION = SessionFacts(started_at=1.0)


class Reader(Provider):
    """A language model that writes what it is told to, and keeps what it was asked."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces
        self.asked: list[ChatRequest] = []

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        self.asked.append(request)
        for piece in self.pieces:
            yield ChatDelta(text=piece)
        yield ChatDelta(finish_reason="stop")


@pytest.fixture
def documents(tmp_path: Path) -> RetrievalAssistant:
    for name, text in (("house", HOUSE), ("bell", "# The bell\n\nThe bell hangs beside the front door.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(text)
    folders = [Folder(tmp_path / "house"), Folder(tmp_path / "bell", is_manual=True)]
    return RetrievalAssistant(folders=folders, embedder=WordEmbedder(), cache_dir=tmp_path / "cache")


async def reply(chat: ReadingChat, *messages: ChatMessage, **options: Any) -> tuple[str, list[str]]:
    request = ChatRequest(messages or (ChatMessage("user", ASKED),), **options)
    deltas = [delta async for delta in chat.stream(request)]
    return "".join(delta.text for delta in deltas), [
        delta.source.title for delta in deltas if isinstance(delta, AssistantDelta) and delta.source
    ]


async def test_the_model_reads_numbered_passages_and_names_the_one_it_used(documents: RetrievalAssistant) -> None:
    reader = Reader("At ten in the evening [", "1", "]. Good night [9].")
    chat = ReadingChat(reader, documents)
    assert await reply(chat) == ("At ten in the evening. Good night.", ["House rules"])
    (asked,) = reader.asked
    assert f"[1] House rules: {LOCKED}" in asked.messages[-1].content
    assert asked.messages[-1].content.endswith(ASKED)


async def test_a_spoken_reply_is_asked_for_without_numbers_and_shows_its_source(documents: RetrievalAssistant) -> None:
    heard = SessionFacts(started_at=1.0, speaks=True)
    reader = Reader("The front door is ", "locked at ten in the evening.")
    chat = ReadingChat(reader, documents)
    assert await reply(chat, facts=heard) == ("The front door is locked at ten in the evening.", ["House rules"])
    assert "[1]" not in reader.asked[0].messages[-1].content
    assert f"House rules: {LOCKED}" in reader.asked[0].messages[-1].content
    for other in ("I do not know that, sorry.", "Good evening, door."):
        assert (await reply(ReadingChat(Reader(other), documents), facts=heard))[1] == []


async def test_each_source_is_shown_once_and_none_that_was_not_used(documents: RetrievalAssistant) -> None:
    question = ChatMessage("user", "Is the front door locked, and has it a bell?")
    said, sources = await reply(ReadingChat(Reader("Yes [1, 2]. Yes [1]."), documents), question)
    assert (said, sorted(sources)) == ("Yes. Yes.", ["House rules", "The bell"])
    assert await reply(ReadingChat(Reader("I do not know."), documents), question) == ("I do not know.", [])


async def test_brackets_that_are_no_numbers_are_kept(documents: RetrievalAssistant) -> None:
    text = "A list is [a, b], and x[0] is its first [sic"
    assert await reply(ReadingChat(Reader(*text), documents)) == (text, [])


async def test_what_documents_do_not_speak_of_is_passed_on_as_it_is(documents: RetrievalAssistant) -> None:
    reader = Reader("It is [1].")
    assert await reply(ReadingChat(reader, documents), ChatMessage("user", "Who wrote Faust?")) == ("It is [1].", [])
    assert reader.asked[0].messages == (ChatMessage("user", "Who wrote Faust?"),)


async def test_programs_with_instructions_get_the_model_as_it_is(documents: RetrievalAssistant) -> None:
    messages = (ChatMessage("system", "You are a pirate."), ChatMessage("user", ASKED))
    reader = Reader("Arr [1].")
    assert await reply(ReadingChat(reader, documents), *messages) == ("Arr [1].", [])
    assert reader.asked[0].messages == messages


async def test_a_conversation_with_instructions_reads_documents_but_not_the_manual(
    documents: RetrievalAssistant,
) -> None:
    question = ChatMessage("user", "Is the front door locked, and has it a bell?")
    reader = Reader("Arr [1].")
    system = ChatMessage("system", "You are a pirate.")
    found = await reply(ReadingChat(reader, documents), system, question, facts=IN_A_CONVERSATION)
    assert found == ("Arr.", ["House rules"])
    assert reader.asked[0].messages[0] == system
    assert "The bell" not in reader.asked[0].messages[-1].content


async def test_a_function_that_replied_is_not_a_question(documents: RetrievalAssistant) -> None:
    messages = (ChatMessage("user", ASKED), ChatMessage("tool", "ten", tool_call_id="call_1"))
    reader = Reader("At ten [1].")
    assert (await reply(ReadingChat(reader, documents), *messages, facts=IN_A_CONVERSATION))[1] == []
    assert reader.asked[0].messages == messages


async def test_cards_say_which_models_read_sources(only_models: Callable[..., None]) -> None:
    server = ServerSettings("http://127.0.0.1:9/v1", "", "bard")
    small, big = (LocalModelSettings(Path("m.gguf"), 1, 512, 1, 1.0, is_small=is_small) for is_small in (True, False))
    found = {
        card.name: card.chat.reads_sources for card in chat_cards(server, sees_images=False, local=big, engine="both")
    }
    assert found == {"bard": True, "assistant": False, "m": True, "embedded-retrieval": False}
    assert not any(
        c.chat.reads_sources
        for c in chat_cards(ServerSettings("", "", ""), sees_images=False, local=small, engine="both")
    )
    reads, quotes = (
        ModelCard(name, "chat", f"{__name__}.Reader", chat=ChatCapabilities(reads_sources=name == "reads"))
        for name in ("reads", "quotes")
    )
    only_models(reads, quotes)
    assert isinstance(providers().get(reads), ReadingChat)
    assert isinstance(providers().get(quotes), Reader)
