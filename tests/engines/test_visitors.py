"""What ordinary visitors say gets the right kind of reply, follow-ups included."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from voiceapp.engines.assistant.chat import RetrievalAssistant
from voiceapp.engines.interfaces import ChatMessage, ChatRequest, SessionFacts

EVENING = datetime(2026, 11, 20, 21, 5, tzinfo=ZoneInfo("UTC"))
LEAST_RIGHT = 0.99
MODEL = "model"
"""The language model replies: no skill fits, and the manual is not quoted."""
TALKS = Path(__file__).with_name("visitors.tsv")
"""Lines of what is said and a regular expression for the reply, tab-separated; an empty line ends a conversation."""


def in_the_evening(zone: tzinfo) -> datetime:
    return EVENING.astimezone(zone)


async def test_visitors_get_the_right_kind_of_reply(models: None, tmp_path: Path) -> None:
    assistant = RetrievalAssistant(cache_dir=tmp_path, clock=in_the_evening)
    count, wrong = 0, []
    for talk in TALKS.read_text(encoding="utf-8").split("\n\n"):
        messages: list[ChatMessage] = []
        for said, expected in (line.split("\t") for line in talk.splitlines()):
            messages.append(ChatMessage("user", said))
            reply = await assistant.known(ChatRequest(tuple(messages), facts=SessionFacts(started_at=0.0)))
            text = MODEL if reply is None else reply.text
            is_manual = reply is not None and reply.source is not None and reply.source.page
            source = "From the manual " if is_manual else ""
            if not re.search(expected, source + text):
                wrong.append((said, text))
            messages.append(ChatMessage("assistant", text))
            count += 1
    assert count >= 450
    assert len(wrong) <= count * (1 - LEAST_RIGHT), wrong
