"""The language model as a chat model: what it says, calls, counts, and leaves out."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.engines.llama_cpp.conftest import chat_of
from voiceapp.engines.interfaces import Call, ChatDelta, ChatMessage, ChatRequest, SessionFacts, ToolCall
from voiceapp.engines.llama_cpp.chat import LlamaChat
from voiceapp.engines.llama_cpp.tool_calls import ToolPlanner
from voiceapp.engines.models.context import fitted
from voiceapp.engines.models.lanes import lanes
from voiceapp.errors import EngineRefused, EngineUnavailable

CAPITAL = (ChatMessage("user", "What is the capital of France?"),)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str, description: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": CITY}}


WEATHER = tool("get_weather", "Get the current weather in a given city")
TIME = tool("get_time", "Get the time in a given city")


async def ask(chat: LlamaChat, *messages: ChatMessage, **options: Any) -> list[ChatDelta]:
    return [delta async for delta in chat.stream(ChatRequest(messages or CAPITAL, **options))]


def text(deltas: list[ChatDelta]) -> str:
    return "".join(delta.text for delta in deltas)


def calls(deltas: list[ChatDelta]) -> list[tuple[str, dict[str, Any]]]:
    found: dict[int, list[str]] = {}
    for delta in deltas:
        if (call := delta.tool_call) is not None:
            parts = found.setdefault(call.index, ["", ""])
            parts[0] += call.name
            parts[1] += call.arguments
    return [(name, json.loads(arguments)) for name, arguments in found.values()]


async def test_it_replies_piece_by_piece_and_counts_tokens(chat: LlamaChat) -> None:
    deltas = await ask(chat, temperature=0.0)
    assert "Paris" in text(deltas)
    assert len(deltas) > 5
    assert deltas[-1].finish_reason == "stop"
    assert deltas[-1].usage is not None
    assert deltas[-1].usage.output_tokens == len(deltas)  # a delta for each token, the last for the end
    assert deltas[-1].usage.input_tokens > 20


async def test_it_is_loaded_when_a_conversation_opens_and_shows_that_one_waits_for_it(
    small_model: Path, tmp_path: Path
) -> None:
    for is_prepared in (False, True):
        chat = chat_of(small_model)
        if is_prepared:
            await chat.prepare(Call("sess_1", "voice"))
        assert (await ask(chat, max_tokens=1, facts=SessionFacts(started_at=1.0)))[0].is_waiting != is_prepared
        await chat.close()
    await chat_of(tmp_path / "missing.gguf").prepare(Call("sess_1", "voice"))  # no caller is refused for it


async def test_a_conversation_reads_its_beginning_from_the_cache(chat: LlamaChat) -> None:
    first = text(await ask(chat, temperature=0.0))
    more = await ask(chat, *CAPITAL, ChatMessage("assistant", first), ChatMessage("user", "And of Spain?"))
    assert more[-1].usage is not None
    assert more[-1].usage.cached_tokens > 30


async def test_a_length_and_a_seed_are_kept(chat: LlamaChat) -> None:
    limited = await ask(chat, max_tokens=3)
    assert (limited[-1].finish_reason, limited[-1].usage and limited[-1].usage.output_tokens) == ("length", 3)
    poem = (ChatMessage("user", "Write a line about the sea."),)
    lines = {text(await ask(chat, *poem, temperature=1.5, seed=-3, max_tokens=12)) for _ in range(2)}
    assert len(lines) == 1


async def test_it_ends_at_a_stop_text_and_gives_probabilities(chat: LlamaChat) -> None:
    stopped = await ask(chat, temperature=0.0, extra={"stop": ["Paris"], "logprobs": True, "top_logprobs": 2})
    assert "Paris" not in text(stopped)
    assert stopped[-1].finish_reason == "stop"
    (first, *_) = [delta.logprobs for delta in stopped if delta.logprobs]
    assert first[0]["logprob"] <= 0
    assert len(first[0]["top_logprobs"]) == 2


@pytest.mark.parametrize("said", ["Describe Paris as JSON with many fields.", "List three colors as JSON.", "Hello."])
async def test_an_object_of_no_given_shape_is_short_and_comes_to_an_end(chat: LlamaChat, said: str) -> None:
    deltas = await ask(chat, ChatMessage("user", said), extra={"response_format": {"type": "json_object"}}, seed=1)
    found = text(deltas)
    assert isinstance(json.loads(found), dict)
    assert deltas[-1].finish_reason == "stop"
    assert not found.startswith("{\n")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Is it raining in London today?", [("get_weather", {"city": "London"})]),
        ("Hello there, how are you?", []),
        (
            "What is the weather in Paris, and what time is it in Tokyo?",
            [("get_weather", {"city": "Paris"}), ("get_time", {"city": "Tokyo"})],
        ),
    ],
)
async def test_it_calls_a_function_where_one_fits(
    chat: LlamaChat, said: str, expected: list[tuple[str, dict[str, Any]]]
) -> None:
    deltas = await ask(chat, ChatMessage("user", said), tools=(WEATHER, TIME))
    assert calls(deltas) == expected
    assert deltas[-1].finish_reason == ("tool_calls" if expected else "stop")
    assert bool(text(deltas)) is not bool(expected)


async def test_one_call_at_a_time_where_parallel_ones_are_not_wanted(chat: LlamaChat) -> None:
    said = ChatMessage("user", "What is the weather in Paris, and what time is it in Tokyo?")
    deltas = await ask(chat, said, tools=(WEATHER, TIME), extra={"parallel_tool_calls": False})
    assert len(calls(deltas)) == 1


@pytest.mark.parametrize(
    ("choice", "name"),
    [("required", "get_weather"), ({"type": "function", "function": {"name": "get_time"}}, "get_time"), ("none", "")],
)
async def test_a_call_can_be_asked_for(chat: LlamaChat, choice: Any, name: str) -> None:
    deltas = await ask(
        chat, ChatMessage("user", "Tell me about the weather."), tools=(WEATHER, TIME), tool_choice=choice
    )
    assert [called for called, _ in calls(deltas)] == ([name] if name else [])


async def test_what_a_function_gave_is_put_into_words(chat: LlamaChat) -> None:
    messages = (
        ChatMessage("user", "Is it raining in London?"),
        ChatMessage("assistant", tool_calls=(ToolCall("call_1", "get_weather", '{"city": "London"}'),)),
        ChatMessage("tool", '{"degrees": 14, "sky": ["clouds", "light rain"]}', tool_call_id="call_1"),
    )
    deltas = await ask(chat, *messages, tools=(WEATHER,))
    assert text(deltas) == "degrees: 14, sky: clouds, light rain."
    assert not calls(deltas)
    assert deltas[-1].usage is not None
    assert deltas[-1].usage.input_tokens > deltas[-1].usage.output_tokens > 5


async def test_the_oldest_exchanges_are_left_out_of_a_long_conversation(chat: LlamaChat) -> None:
    long = [
        message
        for number in range(60)
        for message in (
            ChatMessage("user", f"Tell me all about the number {number}."),
            ChatMessage("assistant", f"The number {number} is liked by many people all over the world."),
        )
    ]
    deltas = await ask(chat, *long, *CAPITAL, max_tokens=8)
    usage = deltas[-1].usage
    assert usage is not None
    assert 512 < usage.input_tokens <= 1024 - 8
    assert usage.dropped_messages > 20
    assert usage.dropped_messages % 2 == 0  # exchanges go whole


async def test_a_message_that_is_too_long_alone_is_refused(chat: LlamaChat) -> None:
    with pytest.raises(EngineRefused, match="the model reads 1024"):
        await ask(chat, ChatMessage("user", "hello there " * 2000))


async def test_what_is_certainly_too_long_is_not_counted() -> None:
    """It would be megabytes of JSON, on the event loop."""
    counted: list[int] = []

    async def count(request: ChatRequest) -> int:
        counted.append(sum(len(message.content) for message in request.messages))
        return counted[-1] // 20

    old = [message for _ in range(60) for message in (ChatMessage("user", "a" * 10_000), ChatMessage("assistant", "b"))]
    request, dropped = await fitted(ChatRequest((*old, *CAPITAL)), context_tokens=1024, reply_tokens=64, count=count)
    assert request.messages[-1:] == CAPITAL
    assert len(request.messages) + dropped == 121
    with pytest.raises(EngineRefused, match="the model reads 1024"):
        await fitted(
            ChatRequest((ChatMessage("user", "a" * 1_000_000),)), context_tokens=1024, reply_tokens=64, count=count
        )
    assert max(counted) <= 32 * 1024


async def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    chat = chat_of(tmp_path / "missing.gguf")
    with pytest.raises(EngineUnavailable) as refusal:
        chat.check()
    assert "fetch_models" in refusal.value.for_operators
    await chat.close()


async def test_descriptions_are_read_once_and_hold_up_no_conversation(models: None) -> None:
    planner, gate = ToolPlanner(), threading.Event()
    request = ChatRequest((ChatMessage("user", "Is it raining in London?"),), tools=(WEATHER, TIME))
    held = asyncio.create_task(lanes().batch.run(gate.wait, 60))
    planning = asyncio.create_task(planner.plan(request))
    await asyncio.sleep(0)
    await lanes().reply.run(int)  # one thread, so what came first is done
    assert lanes().batch.pending == 2
    gate.set()
    assert await held
    assert [call.name for call in await planning] == ["get_weather"]

    gate.clear()
    held = asyncio.create_task(lanes().batch.run(gate.wait, 60))
    assert [call.name for call in await planner.plan(request)] == ["get_weather"]
    assert not held.done()
    gate.set()
    await held
