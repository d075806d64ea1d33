"""What a refusal of a chat server teaches, and what it does not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from voiceapp.engines.interfaces import ChatMessage, ChatRequest
from voiceapp.engines.openai import lessons
from voiceapp.errors import EngineRefused

BODY: dict[str, Any] = {"temperature": 0.5, "stream_options": {}, "top_k": 4, "seed": 1, "model": "some"}
ASKED = ChatRequest((ChatMessage("user", "Hello"), ChatMessage("user", "Again")))
TOO_LONG = "This model's maximum context length is 8192 tokens, and you sent 9000 tokens."


def refusal(said: str, parameter: str = "") -> EngineRefused:
    refused = EngineRefused(said)
    refused.parameter_elsewhere = parameter
    return refused


@pytest.mark.parametrize(
    ("said", "parameter", "left_out"),
    [
        ("Unsupported value: 'temperature' does not support 0.5 with this model.", "", {"temperature"}),
        ("Unrecognized request argument supplied: top_k", "", {"top_k"}),
        ("[{'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'}]", "", {"seed"}),
        ("This is not supported.", "temperature", {"temperature"}),
        ("Invalid schema for function 'stream_options': keyword 'foo' is not supported.", "", set()),
        ("Invalid schema for function 'x': unknown keyword 'seed'.", "", set()),
        ("Unknown keyword 'seed'.", "tools[0].function.parameters", set()),
        ("The text was 'unknown temperature'.", "", set()),
    ],
)
def test_only_a_field_that_the_server_names_is_left_out(said: str, parameter: str, left_out: set[str]) -> None:
    learnt = lessons.Lessons()
    request = ChatRequest((ChatMessage("user", "unknown temperature"),), tools=({"type": "function"},))
    assert learnt.learn(refusal(said, parameter), request, BODY) is bool(left_out)
    assert BODY.keys() - learnt.applied(BODY).keys() == left_out


async def test_what_was_learnt_is_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt = lessons.Lessons()
    assert learnt.learn(refusal("Unknown field seed"), ASKED, BODY)
    for later_s, is_left_out in ((0.9, True), (1.1, False)):
        now = time.monotonic() + later_s * lessons.LESSON_S
        with monkeypatch.context() as patch:
            patch.setattr(time, "monotonic", lambda now=now: now)
            await learnt.fitted(ASKED)
        assert ("seed" not in learnt.applied(BODY)) is is_left_out


@pytest.mark.parametrize(
    ("words", "parts", "said", "is_learnt"),
    [
        (10, (), TOO_LONG, False),
        (9000, ({"type": "image_url"},), TOO_LONG, False),
        (9000, (), TOO_LONG, True),
        (1500, (), "The prompt is too long.", True),
        (500, (), "The prompt is too long.", False),
    ],
)
async def test_only_long_words_teach_a_bound(words: int, parts: Any, said: str, is_learnt: bool) -> None:
    messages = (ChatMessage("user", "why " * words), ChatMessage("user", "and?", parts=parts))
    learnt = lessons.Lessons()
    assert learnt.learn(refusal(said), ChatRequest(messages), {}) is is_learnt
    usual = ChatRequest((ChatMessage("user", "why " * 400), ChatMessage("user", "Again")))
    assert (await learnt.fitted(usual))[1] == 0
