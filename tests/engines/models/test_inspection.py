"""What chat models are asked and reply is inspected, by a list of words or a moderation server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pytest_django.fixtures import Settings

from tests.web import everywhere, listening
from voiceapp.catalogue.cards import ModelCard
from voiceapp.engines.interfaces import ChatDelta, ChatMessage, ChatRequest, Provider, ToolCallDelta
from voiceapp.engines.models.inspection import ContentInspector, InspectedChat
from voiceapp.engines.models.providers import providers
from voiceapp.errors import DataInspectionFailed, EngineUnavailable


class Scripted(Provider):
    """A chat model that says what it was made with, a few characters at a time."""

    def __init__(self, text: str = "All is well. And so it stays.", arguments: str = "") -> None:
        self._text = text
        self._arguments = arguments

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        for start in range(0, len(self._text), 5):
            yield ChatDelta(text=self._text[start : start + 5])
        if self._arguments:
            for start in range(0, len(self._arguments), 5):
                yield ChatDelta(tool_call=ToolCallDelta(0, "call_1", "tell", self._arguments[start : start + 5]))
        yield ChatDelta(finish_reason="stop")


class Moderation:
    """Flags every text that holds `badger`; replies with `status`."""

    base_url = ""
    status = 200

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def decide(self, request: web.Request) -> web.Response:
        self.asked.append(await request.json())
        return web.json_response({"results": [{"flagged": "badger" in self.asked[-1]["input"]}]}, status=self.status)


@pytest.fixture
async def moderation() -> AsyncIterator[Moderation]:
    found = Moderation()
    async with listening(everywhere(found.decide)) as origin:
        found.base_url = f"{origin}/v1"
        yield found


@pytest.fixture
def words(tmp_path: Path) -> Path:
    file = tmp_path / "words.txt"
    file.write_text("# not to be said\nfrog\npurple rain\n")
    return file


async def ask(chat: InspectedChat, *messages: ChatMessage) -> str:
    request = ChatRequest(messages or (ChatMessage("user", "Hello"),))
    text = ""
    async for delta in chat.stream(request):
        text += delta.text
    return text


async def test_what_is_harmless_passes_whole(words: Path) -> None:
    chat = InspectedChat(Scripted(), ContentInspector(words=str(words)))
    assert await ask(chat, ChatMessage("user", "What of frogs and rain?")) == "All is well. And so it stays."


@pytest.mark.parametrize("said", ["A FROG!", "I like purple rain."])
async def test_a_question_with_a_listed_word_is_refused(words: Path, said: str) -> None:
    chat = InspectedChat(Scripted(), ContentInspector(words=str(words)))
    with pytest.raises(DataInspectionFailed, match="Input data") as refusal:
        await ask(chat, ChatMessage("user", said))
    assert (refusal.value.code, refusal.value.http_status) == ("DataInspectionFailed", 400)


async def test_a_reply_goes_on_up_to_the_sentence_that_does_not_pass(words: Path) -> None:
    chat = InspectedChat(Scripted("All is well. There is a frog here. Bye."), ContentInspector(words=str(words)))
    deltas = chat.stream(ChatRequest((ChatMessage("user", "Hello"),)))
    assert (await anext(deltas)).text == "All is well. "
    with pytest.raises(DataInspectionFailed, match="Output data"):
        await anext(deltas)


async def test_arguments_of_a_call_are_inspected(words: Path) -> None:
    chat = InspectedChat(Scripted("", '{"what": "a frog"}'), ContentInspector(words=str(words)))
    with pytest.raises(DataInspectionFailed):
        await ask(chat)


async def test_a_moderation_server_decides(moderation: Moderation) -> None:
    inspector = ContentInspector(base_url=moderation.base_url, model="watch")
    chat = InspectedChat(Scripted(), inspector)
    assert await ask(chat) == "All is well. And so it stays."
    assert moderation.asked[0] == {"input": "Hello", "model": "watch"}
    earlier = (ChatMessage("user", "A badger"), ChatMessage("assistant", "No."), ChatMessage("user", "Then hello"))
    await ask(chat, *earlier)
    with pytest.raises(DataInspectionFailed):
        await ask(chat, ChatMessage("user", "A badger"))
    await inspector.close()


async def test_nothing_passes_when_the_moderation_server_fails(moderation: Moderation) -> None:
    moderation.status = 500
    inspector = ContentInspector(base_url=moderation.base_url)
    with pytest.raises(EngineUnavailable, match="moderation server"):
        await ask(InspectedChat(Scripted(), inspector))
    await inspector.close()


class Elsewhere(Scripted):
    """A model whose server was found to be gone."""

    _is_gone = False

    async def probe(self) -> None:
        self._is_gone = True

    def check(self) -> None:
        if self._is_gone:
            raise EngineUnavailable("The server does not answer.")


async def test_a_model_that_is_gone_is_noticed_behind_the_inspection(words: Path) -> None:
    chat = InspectedChat(Elsewhere(), ContentInspector(words=str(words)))
    chat.check()
    await chat.probe()
    with pytest.raises(EngineUnavailable, match="does not answer"):
        chat.check()


def test_the_chat_models_of_a_server_are_inspected_where_that_is_set_up(
    settings: Settings, words: Path, only_models: Callable[..., None]
) -> None:
    card = ModelCard("scripted", "chat", "tests.engines.models.test_inspection.Scripted")
    only_models(card)
    assert isinstance(providers().get(card), Scripted)
    settings.INSPECTION_WORDS = str(words)
    only_models(card)
    assert isinstance(providers().get(card), InspectedChat)
    assert isinstance(providers().uninspected(card), Scripted)
