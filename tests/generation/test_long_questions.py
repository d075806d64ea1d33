"""Megabytes of question and long conversations, to the embedded assistant: no other conversation waits for them."""

from __future__ import annotations

import asyncio
import time

import pytest

from voiceapp.engines.assistant.chat import RetrievalAssistant
from voiceapp.engines.interfaces import ChatMessage, ChatRequest

HELD_UP_S = 0.3
"""Of this process's own work, for a machine may do something else. Without a limit to what is read it is seconds."""


@pytest.mark.parametrize(
    "said",
    [
        *(["a," * 800_000], ["1 2 " * 400_000], ["what is 1 plus " * 100_000], ["9" * 1_800_000]),
        [*["for me " * 140] * 1_999, "what is my name"],
        [*["add " + "bread and butter " * 60] * 1_999, "add milk to my list"],
        [*["why is that so? " * 60] * 1_999, "tell me more"],
        ["cancel " + "all my " * 50 + "thoughts"],
    ],
    ids=["commas", "numbers", "sum", "digits", "name", "list", "topic", "ambiguous"],
)
async def test_a_long_conversation_holds_nobody_up(said: list[str]) -> None:
    assistant = RetrievalAssistant()
    await assistant.warm()
    longest_s, is_over = 0.0, asyncio.Event()

    async def beat() -> None:
        nonlocal longest_s
        while not is_over.is_set():
            begun = time.process_time()
            await asyncio.sleep(0)
            longest_s = max(longest_s, time.process_time() - begun)

    request = ChatRequest(tuple(ChatMessage("user", text) for text in said))
    beating = asyncio.create_task(beat())
    await asyncio.sleep(0)
    deltas = [delta async for delta in assistant.stream(request)]
    is_over.set()
    await beating
    await assistant.close()
    assert deltas[-1].finish_reason == "stop"
    assert longest_s < HELD_UP_S
