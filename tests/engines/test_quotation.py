"""Quotations that are spoken: short, and without what nobody can listen to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.engines.test_retrieval import INSIDE
from voiceapp.engines.assistant.chat import RetrievalAssistant
from voiceapp.engines.assistant.documents import Passage
from voiceapp.engines.assistant.quotation import MAX_SPOKEN_CHARS, UNSPEAKABLE, quotation
from voiceapp.engines.assistant.retrieval import Hit
from voiceapp.engines.interfaces import ChatMessage, ChatRequest, SessionFacts

ASKED = (*(question for question, _ in INSIDE), "Tell me about webhooks")


def hit(*sentences: str) -> Hit:
    return Hit(Passage("API keys", "", sentences, True, "api-keys"), sentences, 0.7)


def test_what_is_read_is_quoted_in_full() -> None:
    reply = quotation(hit("Run make key ACCOUNT=NAME.", "It prints a key."), is_spoken=False, shows_source=False)
    assert reply.text == "From the manual, API keys: Run make key ACCOUNT=NAME. It prints a key."
    shown = quotation(hit("Run make key ACCOUNT=NAME.", "It prints a key."), is_spoken=False, shows_source=True)
    assert shown.text == "Run make key ACCOUNT=NAME. It prints a key."
    assert shown.source == reply.source is not None
    assert (reply.source.page, reply.source.text) == ("api-keys", "Run make key ACCOUNT=NAME. It prints a key.")


@pytest.mark.parametrize(
    ("sentences", "spoken"),
    [
        (("A key belongs to an account.", "Set API_KEY to it."), "A key belongs to an account."),
        (("Post to /api/v1/agentstudio/keys.",), "That is hard to listen to, so I show it to you instead."),
        (
            ("You find the keys of an account on the operators' site, " + "and also in many other places " * 3,),
            "You find the keys of an account on the operators' site.",
        ),
    ],
)
def test_what_is_spoken_can_be_listened_to(sentences: tuple[str, ...], spoken: str) -> None:
    assert quotation(hit(*sentences), is_spoken=True, shows_source=True).text == spoken


async def test_every_quotation_of_the_manual_is_short_and_speakable(models: None, tmp_path: Path) -> None:
    assistant = RetrievalAssistant(cache_dir=tmp_path)
    for question in ASKED:
        request = ChatRequest((ChatMessage("user", question),), facts=SessionFacts(speaks=True))
        reply = await assistant.known(request)
        if reply is None or reply.source is None:
            continue
        assert len(reply.text) <= MAX_SPOKEN_CHARS, reply.text
        assert not UNSPEAKABLE.search(reply.text), reply.text
        assert re.search(r"[.!?]$", reply.text)
