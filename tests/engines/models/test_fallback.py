"""Chains of models: who is asked, who is left out, and when it is too late for another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import numpy as np
import pytest

from voiceapp.catalogue.cards import ChatCapabilities, EmbeddingCapabilities, ModelCard, ModelKind
from voiceapp.engines.interfaces import ChatDelta, ChatMessage, ChatRequest, Provider, Recognition, Samples
from voiceapp.engines.models import fallback
from voiceapp.engines.models.fallback import (
    FallbackChat,
    FallbackEmbedder,
    FallbackRecognizer,
    FallbackReranker,
    FallbackSynthesizer,
    Link,
)
from voiceapp.engines.models.tokens import Counted
from voiceapp.engines.text_interfaces import EmbeddingRequest, EmbeddingResult, Ranked, Ranking, RerankRequest
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable

ASKED = ChatRequest((ChatMessage("user", "Hello"),))
AWAY = EngineUnavailable("It is away.")
LATE = EngineTimeout("It is late.")
REFUSED = EngineRefused("Not so.")


class Scripted(Provider):
    """Says and gives what it was told to, and fails where it was told to."""

    def __init__(self, *said: str | EngineError, languages: Sequence[str] = ()) -> None:
        self._said = said
        self.languages = languages
        self.asked: list[Any] = []
        self.is_warm = False

    def check(self) -> None:
        for each in self._said:
            if isinstance(each, EngineUnavailable):
                raise each

    async def warm(self) -> None:
        self.check()
        self.is_warm = True

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        self.asked.append(request)
        for each in self._said:
            if isinstance(each, EngineError):
                raise each
            yield ChatDelta(text=each)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResult:
        self.asked.append(request)
        self.check()
        return EmbeddingResult(None, total_tokens=1)

    async def recognize(self, audio: Samples, *, language: str | None = None, **_: Any) -> Recognition:
        self.asked.append(language)
        self.check()
        return Recognition(" ".join(each for each in self._said if isinstance(each, str)))

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        self.asked.append(text)
        for each in self._said:
            if isinstance(each, EngineError):
                raise each
            yield each.encode()

    async def rerank(self, request: RerankRequest) -> Ranking:
        self.asked.append(request)
        self.check()
        return Ranking([Ranked(0, 1.0)])


def link(name: str, *said: str | EngineError, kind: ModelKind = "chat", **card: Any) -> Link:
    found = ModelCard(name, kind, "some.where", service="acme", **card)
    return Link(found, Scripted(*said, languages=found.languages))


async def said(*links: Link, request: ChatRequest = ASKED) -> list[tuple[str, str]]:
    return [(delta.text, delta.served_by) async for delta in FallbackChat(links).stream(request)]


async def test_the_first_replies_while_it_can() -> None:
    second = link("second", "no")
    assert await said(link("first", "one ", "two"), second) == [("one ", "acme/first"), ("two", "")]
    assert second.engine.asked == []


@pytest.mark.parametrize("error", [AWAY, LATE])
async def test_the_next_replies_when_one_fails_before_it_has_begun(
    error: EngineError, caplog: pytest.LogCaptureFixture
) -> None:
    links = (link("first", error), link("second", AWAY), link("third", "here"))
    assert await said(*links) == [("here", "acme/third")]
    assert "acme/first" in caplog.text
    assert "acme/second" in caplog.text


async def test_a_reply_that_has_begun_is_nobody_elses_any_more() -> None:
    second = link("second", "no")
    with pytest.raises(EngineUnavailable):
        await said(link("first", "one ", AWAY), second)
    assert second.engine.asked == []


async def test_what_is_refused_is_refused_by_all() -> None:
    with pytest.raises(EngineRefused):
        await said(link("first", REFUSED), link("second", "no"))


async def test_the_last_one_says_why_none_replied() -> None:
    with pytest.raises(EngineTimeout):
        await said(link("first", AWAY), link("second", LATE))


@pytest.mark.parametrize(
    "request_",
    [
        ChatRequest((ChatMessage("user", "See", parts=({"type": "image_url"},)),)),
        ChatRequest(ASKED.messages, tools=({"type": "function"},)),
        ChatRequest(ASKED.messages, extra={"response_format": {"type": "json_object"}}),
    ],
)
async def test_a_model_that_cannot_do_what_is_asked_is_left_out(request_: ChatRequest) -> None:
    able = ChatCapabilities(images=True, tools=True, response_format=True)
    links = (link("first", AWAY, chat=able), link("plain", "no"), link("third", "here", chat=able))
    assert await said(*links, request=request_) == [("here", "acme/third")]


def embedder(name: str, *said: str | EngineError, **able: Any) -> Link:
    return link(name, *said, kind="embedding", embedding=EmbeddingCapabilities(**able))


async def test_a_caller_who_leaves_while_those_beside_are_stopped_leaves_none_open() -> None:
    closed = asyncio.Event()

    async def given() -> AsyncGenerator[str, None]:
        try:
            yield "some"
        finally:
            closed.set()

    async def stubborn() -> AsyncGenerator[str, None]:
        try:
            await asyncio.Event().wait()
            yield "none"
        finally:
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    asked: dict[Any, Any] = {}
    for parts in (given(), stubborn()):
        fallback._ask(asked, link("some"), parts)
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    stopping = asyncio.create_task(fallback._stop(asked))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert closed.is_set()
    assert not asked


async def test_vectors_come_from_the_first_that_can_give_them() -> None:
    request = EmbeddingRequest((Counted("one", 1),), dimension=64, sparse=True)
    links = (
        embedder("first", AWAY, has_sparse=True),
        embedder("dense", has_sparse=False),
        embedder("long", dimensions=frozenset({1024}), has_sparse=True),
        embedder("fourth", dimensions=frozenset({64}), has_sparse=True),
    )
    found = await FallbackEmbedder(links).embed(request)
    assert found.served_by == "acme/fourth"
    assert links[1].engine.asked == links[2].engine.asked == []


async def test_a_model_that_stands_in_gives_vectors_of_its_usual_length() -> None:
    links = (embedder("first", AWAY), embedder("second", default_dimension=1024))
    await FallbackEmbedder(links).embed(EmbeddingRequest((Counted("one", 1),)))
    assert (links[0].engine.asked[0].dimension, links[1].engine.asked[0].dimension) == (None, 1024)


async def test_a_ranking_says_who_gave_it() -> None:
    chain = FallbackReranker([link("first", AWAY, kind="rerank"), link("second", kind="rerank")])
    found = await chain.rerank(RerankRequest(Counted("q", 1), (Counted("d", 1),)))
    assert (found.served_by, found.results) == ("acme/second", [Ranked(0, 1.0)])


async def test_a_chain_can_serve_while_one_of_its_models_can() -> None:
    second = link("second", "here")
    chain = FallbackChat([link("first", AWAY), second])
    chain.check()
    await chain.warm()
    assert second.engine.is_warm
    broken = FallbackChat([link("first", AWAY), link("second", AWAY)])
    with pytest.raises(EngineUnavailable):
        broken.check()
    with pytest.raises(EngineUnavailable):
        await broken.warm()


async def heard(*links: Link, language: str | None = None) -> tuple[str, str]:
    found = await FallbackRecognizer(links).recognize(np.zeros(160, np.float32), language=language)
    return found.text, found.served_by


async def test_the_next_hears_what_one_that_fails_does_not() -> None:
    links = (link("first", AWAY, kind="asr"), link("second", "words", kind="asr"))
    assert await heard(*links) == ("words", "acme/second")


async def test_a_reading_that_may_fail_goes_to_no_server_elsewhere() -> None:
    here = link("first", AWAY, kind="asr", runs_here=True)
    elsewhere = link("second", "words", kind="asr")
    with pytest.raises(EngineUnavailable):
        await FallbackRecognizer((here, elsewhere)).recognize(np.zeros(160, np.float32), urgent=False)
    assert elsewhere.engine.asked == []


async def test_one_that_does_not_know_the_language_is_left_out() -> None:
    second = link("second", "words", kind="asr", languages=("de",))
    with pytest.raises(EngineUnavailable):
        await heard(link("first", AWAY, kind="asr"), second, language="en-GB")
    assert second.engine.asked == []
    assert await heard(link("first", AWAY, kind="asr"), second, language="de-AT") == ("words", "acme/second")


async def spoken(*links: Link) -> tuple[bytes, list[str]]:
    noted: list[str] = []
    sound = FallbackSynthesizer(links).speak("Hi", voice="", sample_rate_hz=24_000, note=noted.append)
    return b"".join([pcm async for pcm in sound]), noted


@pytest.mark.parametrize("error", [AWAY, LATE])
async def test_the_next_speaks_when_one_fails_before_it_has_begun(error: EngineError) -> None:
    third = link("third", "no", kind="tts")
    links = (link("first", error, kind="tts"), link("second", "so", "und", kind="tts"), third)
    assert await spoken(*links) == (b"sound", ["acme/second"])
    assert third.engine.asked == []


async def test_speech_that_breaks_off_is_not_begun_again() -> None:
    with pytest.raises(EngineUnavailable):
        await spoken(link("first", "so", AWAY, kind="tts"), link("second", "sound", kind="tts"))


async def test_a_text_that_is_refused_is_spoken_by_no_other() -> None:
    second = link("second", "sound", kind="tts")
    with pytest.raises(EngineRefused):
        await spoken(link("first", REFUSED, kind="tts"), second)
    assert second.engine.asked == []
