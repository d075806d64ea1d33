"""The language model inside the process, loaded and run for real: a tiny one that says one sentence."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio
from django.conf import settings

from tests.engines import tiny_model
from voiceapp.engines.genai.chat import WAITING, GenaiChat
from voiceapp.engines.interfaces import ChatDelta, ChatMessage, ChatRequest
from voiceapp.errors import EngineRefused, EngineUnavailable

HELLO = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model.make(folder)
    return folder


@pytest_asyncio.fixture
async def chat(folder: Path) -> AsyncIterator[GenaiChat]:
    model = GenaiChat(folder=str(folder))
    yield model
    await model.close()


async def ask(chat: GenaiChat, request: ChatRequest) -> list[ChatDelta]:
    return [delta async for delta in chat.stream(request)]


def text(deltas: list[ChatDelta]) -> str:
    return "".join(delta.text for delta in deltas)


async def test_it_says_what_the_model_says(chat: GenaiChat) -> None:
    await chat.warm()
    deltas = await ask(chat, ChatRequest(HELLO))
    assert text(deltas) == tiny_model.SENTENCE
    assert len(deltas) > 3
    assert deltas[-1].finish_reason == "stop"
    assert deltas[-1].usage is not None
    assert deltas[-1].usage.output_tokens == len(deltas) - 1
    assert deltas[-1].usage.input_tokens > 10


async def test_it_stops_at_the_length_asked_for(chat: GenaiChat) -> None:
    deltas = await ask(chat, ChatRequest(HELLO, max_tokens=2))
    assert tiny_model.SENTENCE.startswith(text(deltas))
    assert (deltas[-1].finish_reason, deltas[-1].usage and deltas[-1].usage.output_tokens) == ("length", 2)


async def test_it_stops_at_a_token_asked_for(chat: GenaiChat, tmp_path: Path) -> None:
    tokens = tiny_model.make(tmp_path / "again")
    deltas = await ask(chat, ChatRequest(HELLO, extra={"stop_token_ids": [tokens[2]]}))
    assert deltas[-1].finish_reason == "stop"
    assert deltas[-1].usage is not None
    assert deltas[-1].usage.output_tokens == 2


async def test_it_takes_the_usual_sampling(chat: GenaiChat) -> None:
    request = ChatRequest(
        HELLO, temperature=0.1, top_p=0.5, seed=-7, extra={"top_k": 1, "repetition_penalty": 1.1, "logit_bias": {}}
    )
    assert text(await ask(chat, request)) == tiny_model.SENTENCE
    assert text(await ask(chat, ChatRequest(HELLO, temperature=0.0))) == tiny_model.SENTENCE


async def test_it_reads_what_a_tool_answered(chat: GenaiChat) -> None:
    messages = (*HELLO, ChatMessage("assistant"), ChatMessage("tool", "20 degrees", tool_call_id="call_1"))
    assert text(await ask(chat, ChatRequest(messages))) == tiny_model.SENTENCE


async def test_it_refuses_a_conversation_longer_than_it_reads(chat: GenaiChat) -> None:
    with pytest.raises(EngineRefused, match=f"reads {tiny_model.CONTEXT_TOKENS}"):
        await ask(chat, ChatRequest((ChatMessage("user", "ab " * 400),)))


async def test_answers_wait_for_each_other_and_not_too_many_do(chat: GenaiChat) -> None:
    await chat.warm()
    answers = await asyncio.gather(*(ask(chat, ChatRequest(HELLO)) for _ in range(WAITING + 4)), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, EngineUnavailable)]
    assert len(refused) == 4
    assert {error.code for error in refused} == {"Throttling.Concurrency"}
    assert {text(answer) for answer in answers if isinstance(answer, list)} == {tiny_model.SENTENCE}


async def test_closing_the_stream_stops_the_writing(tmp_path: Path) -> None:
    tiny_model.make(tmp_path / "endless", is_endless=True)
    chat = GenaiChat(folder=str(tmp_path / "endless"), max_output_tokens=900_000)
    for _ in range(2):  # the second answer would wait for the first for minutes
        async with asyncio.timeout(60), aclosing(chat.stream(ChatRequest(HELLO))) as deltas:
            assert tiny_model.SENTENCE.startswith((await anext(deltas)).text)
    await chat.close()


async def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    chat = GenaiChat(folder=str(tmp_path))
    with pytest.raises(EngineUnavailable, match=r"genai_config\.json"):
        await chat.warm()
    (tmp_path / "genai_config.json").write_text('{"model": {"type": "llama"}}')
    with pytest.raises(EngineUnavailable, match="cannot be loaded"):
        await ask(chat, ChatRequest(HELLO))
    await chat.close()


def test_without_the_package_it_says_what_to_install(folder: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "sys.modules['onnxruntime_genai'] = None\n"
        "from voiceapp.engines.genai.chat import GenaiChat\n"
        f"asyncio.run(GenaiChat(folder={str(folder)!r}).warm())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=60,
        env={"DJANGO_SETTINGS_MODULE": "tests.settings", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert "EngineUnavailable" in done.stderr
    assert "requirements-genai.txt" in done.stderr
