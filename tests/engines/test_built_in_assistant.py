"""Who replies: skills, then documents, then the language model, which has instructions and tools to itself."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from tests.engines.test_assistant import Talk as RetrievalTalk
from voiceapp.catalogue.defaults import SMALL_MODEL, LocalModelSettings, chat_cards
from voiceapp.catalogue.servers import ServerSettings
from voiceapp.engines.assistant.built_in import Assistant
from voiceapp.engines.assistant.skills.unknown import QUESTION, STATEMENT
from voiceapp.engines.interfaces import ChatMessage, ChatRequest, SessionFacts
from voiceapp.engines.models import weights
from voiceapp.engines.models.providers import providers
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.errors import EngineRefused
from voiceapp.protocol.items import Author

NO_SERVER = ServerSettings("", "", "")


@pytest_asyncio.fixture(params=["both"])
async def assistant(
    models: None, only_models: Callable[..., None], request: pytest.FixtureRequest
) -> AsyncIterator[Assistant]:
    small = LocalModelSettings(weights.path(SMALL_MODEL), 1, 1024, 1, 30.0, is_small=True)
    cards = chat_cards(NO_SERVER, sees_images=False, local=small, engine=request.param)
    only_models(*cards)
    built: Assistant = providers().get(cards[0])
    assert isinstance(built, Assistant)
    await built.warm()
    yield built
    for provider in providers().built():
        await provider.close()


class Talk(RetrievalTalk):
    """A conversation without instructions."""

    def __init__(self, assistant: Assistant) -> None:
        super().__init__(assistant)  # type: ignore[arg-type]
        self.messages = []


async def test_each_question_goes_to_the_first_that_knows(assistant: Assistant) -> None:
    talk = Talk(assistant)
    assert await talk.say("What is two plus two?") == "2 plus 2 is 4."
    assert (await talk.say("How do I revoke an API key?")).startswith("From the manual, API keys: ")
    assert "Paris" in await talk.say("In which city is the Eiffel Tower?", seed=1)


@pytest.mark.parametrize("assistant", ["both", "skills"], indirect=True)
async def test_instructions_and_tools_are_for_the_language_model(assistant: Assistant) -> None:
    talk = Talk(assistant)
    talk.messages = [ChatMessage("system", "You are a pirate. Reply in one sentence.")]
    assert await talk.say("How do I create an API key?", max_tokens=20) != ""
    assert "From the manual" not in talk.messages[-1].content
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "get_time", "description": "Get the time in a given city", "parameters": parameters}
    talk = Talk(assistant)
    await talk.say("What time is it in Tokyo?", tools=({"type": "function", "function": function},))
    assert talk.deltas[0].tool_call is not None


@pytest.mark.parametrize("assistant", ["skills"], indirect=True)
async def test_it_leaves_conversations_to_skills_and_documents(assistant: Assistant) -> None:
    talk = Talk(assistant)
    assert await talk.say("What is two plus two?") == "2 plus 2 is 4."
    assert (await talk.say("How do I revoke an API key?")).startswith("From the manual, API keys: ")
    assert await talk.say("Who wrote Dune?") == QUESTION[0]
    wanted = {"response_format": {"type": "json_object"}}
    assert isinstance(json.loads(await talk.say("Describe a dog.", extra=wanted)), dict)
    talk = Talk(assistant)
    talk.messages.append(ChatMessage("system", "Be brief."))
    talk.facts = SessionFacts(started_at=0.0)
    assert await talk.say("What is two plus two?") == "2 plus 2 is 4.", "skills come first in a session"
    assert await talk.say("Who wrote Dune?") != QUESTION[0], "and the model follows instructions"


async def test_what_the_small_model_writes_may_be_wrong(assistant: Assistant) -> None:
    authors = {}
    for words in ("What is two plus two?", "In which city is the Eiffel Tower?"):
        request = ChatRequest((ChatMessage("user", words),), seed=1)
        async with aclosing(assistant.stream(request)) as deltas:
            authors[words] = [delta.author async for delta in deltas if delta.author]
    assert list(authors.values()) == [
        [Author("skill")],
        [Author("model", weights.path(SMALL_MODEL).stem.lower(), may_be_wrong=True)],
    ]


async def test_a_spoken_reply_of_the_small_model_is_two_sentences_at_most(assistant: Assistant) -> None:
    talk = Talk(assistant)
    talk.facts = SessionFacts(speaks=True)
    reply = await talk.say("Tell me a long story about a dog and a cat.", seed=3)
    splitter = SentenceSplitter(first_clause_chars=0)
    assert 1 <= len([*splitter.feed(reply), *splitter.flush()]) <= 2
    assert reply.rstrip().endswith((".", "!", "?"))
    assert talk.deltas[-1].finish_reason == "stop"


async def test_a_page_that_was_cut_off_hears_the_rest_of_a_skills_reply(assistant: Assistant) -> None:
    talk = Talk(assistant)
    await talk.say("Tell me a joke.")
    talk.messages[-1] = ChatMessage("assistant", "Why did the microphone break up")
    talk.messages.insert(0, ChatMessage("system", "Go on with your reply where it was cut off."))
    assert await talk.respond() == "with the speaker? It needed some feedback."


async def test_a_message_beyond_the_context_is_refused_and_a_speaker_hears_a_reply(assistant: Assistant) -> None:
    talk = Talk(assistant)
    with pytest.raises(EngineRefused, match=r"too long: the model reads 1024 tokens"):
        await talk.say("wombat zebra " * 3000)
    talk.facts = SessionFacts(speaks=True)
    assert await talk.say("wombat zebra " * 3000) == STATEMENT[0]


async def test_without_its_language_model_it_replies_in_a_short_sentence(
    models: None, only_models: Callable[..., None], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_text("no model")
    cards = chat_cards(NO_SERVER, sees_images=False, local=LocalModelSettings(broken, 1, 1024, 1, 30.0), engine="both")
    only_models(*cards)
    assistant: Assistant = providers().get(cards[0])
    await assistant.warm()
    assistant.check()
    talk = Talk(assistant)
    assert await talk.say("Who wrote Dune?") == QUESTION[0]
    assert await talk.say("What is two plus two?") == "2 plus 2 is 4."
    for provider in providers().built():
        await provider.close()


async def test_a_language_model_that_dies_is_back_for_the_next_question(assistant: Assistant) -> None:
    talk = Talk(assistant)
    model = assistant._model
    os.kill((await model._process.running()).process_id, signal.SIGKILL)  # type: ignore[attr-defined]
    assert "Paris" in await talk.say("In which city is the Eiffel Tower?", seed=1)


def test_the_engine_decides_who_comes_first() -> None:
    small = LocalModelSettings(Path("tiny.gguf"), 1, 1024, 1, 30.0)
    server = ServerSettings("http://127.0.0.1:9", "", "theirs")

    def first(engine: str, *, server: ServerSettings = NO_SERVER, local: LocalModelSettings | None = small) -> str:
        return chat_cards(server, sees_images=False, local=local, engine=engine)[0].name

    assert (first("both"), first("model"), first("skills")) == ("assistant", "tiny", "assistant")
    assert first("both", local=None) == first("skills", local=None) == "embedded-retrieval"
    assert (first("both", server=server), first("skills", server=server)) == ("theirs", "assistant")
