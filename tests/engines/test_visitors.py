"""What ordinary visitors say gets the right kind of reply, follow-ups included."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.engines.further_visitors import FURTHER
from tests.engines.visitors import MANUAL, MODEL, TALKS
from voiceapp.engines.assistant.chat import RetrievalAssistant
from voiceapp.engines.interfaces import ChatMessage, ChatRequest, SessionFacts

EVENING = datetime(2026, 11, 20, 21, 5, tzinfo=ZoneInfo("UTC"))
LEAST_RIGHT = 0.95


def in_the_evening(zone: tzinfo) -> datetime:
    return EVENING.astimezone(zone)


async def wrong_replies(
    assistant: RetrievalAssistant, talks: tuple[tuple[tuple[str, str], ...], ...]
) -> list[tuple[str, str]]:
    """Each utterance whose reply is of another kind than expected, with that reply."""
    found = []
    for talk in talks:
        messages: list[ChatMessage] = []
        for said, expected in talk:
            messages.append(ChatMessage("user", said))
            reply = await assistant.known(ChatRequest(tuple(messages), facts=SessionFacts(started_at=0.0)))
            text = MODEL if reply is None else reply.text
            source = MANUAL if reply is not None and reply.source else ""
            if not re.search(expected, f"{source} {text}"):
                found.append((said, text))
            messages.append(ChatMessage("assistant", text))
    return found


@pytest.mark.parametrize(("talks", "least"), [(TALKS, 150), (FURTHER, 100)])
async def test_visitors_get_the_right_kind_of_reply(
    models: None, tmp_path: Path, talks: tuple[tuple[tuple[str, str], ...], ...], least: int
) -> None:
    assistant = RetrievalAssistant(cache_dir=tmp_path, clock=in_the_evening)
    wrong = await wrong_replies(assistant, talks)
    count = sum(map(len, talks))
    assert count >= least
    assert len(wrong) <= count * (1 - LEAST_RIGHT), wrong
