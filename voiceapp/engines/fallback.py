"""Models that stand in for one that cannot serve, in the order of a chain, until one has begun to reply.

What a request is refused for, it is refused for by all of them: only a model that is unavailable, or takes too long, is
followed by the next. A model that cannot do what is asked, by its card, is left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from voiceapp.catalogue.cards import ModelCard
from voiceapp.engines.interfaces import (
    ChatDelta,
    ChatRequest,
    Provider,
    Recognition,
    Samples,
    Synthesizer,
    Voice,
)
from voiceapp.engines.languages import is_one_of
from voiceapp.engines.text_interfaces import EmbeddingRequest, EmbeddingResult, Ranking, RerankRequest
from voiceapp.errors import EngineError, EngineTimeout, EngineUnavailable

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

FAILURES = (EngineUnavailable, EngineTimeout)
"""After which the next model is asked."""


@dataclass(frozen=True, slots=True)
class Link:
    """A model of a chain and what provides it."""

    card: ModelCard
    engine: Any


class _Chain(Provider):
    def __init__(self, links: Sequence[Link]) -> None:
        """`links` in the order in which they are asked; at least one."""
        self._links = tuple(links)

    @property
    def trouble(self) -> EngineError | None:
        """See `Provider`: that of the first."""
        found: EngineError | None = self._links[0].engine.trouble
        return found

    def check(self) -> None:
        """See `Provider`: it can serve while one of its models can.

        Raises:
            EngineUnavailable: if none can; the message is that of the first.
        """
        errors = [error for link in self._links if (error := _unavailable(link.engine)) is not None]
        if len(errors) == len(self._links):
            raise errors[0]

    async def probe(self) -> None:
        """See `Provider`."""
        await asyncio.gather(*(link.engine.probe() for link in self._links))

    async def warm(self) -> None:
        """Load those that can be loaded.

        Raises:
            EngineUnavailable: if none can be.
        """
        errors: list[EngineUnavailable] = []
        for link in self._links:
            try:
                await link.engine.warm()
            except EngineUnavailable as error:
                errors.append(error)
        if len(errors) == len(self._links):
            raise errors[0]

    async def _first(self, able: Sequence[Link], ask: Callable[[Link], Awaitable[Result]]) -> tuple[Link, Result]:
        for link in able[:-1]:
            try:
                return link, await ask(link)
            except FAILURES as error:
                _note(link, error)
        return able[-1], await ask(able[-1])


class FallbackChat(_Chain):
    """A `ChatModel`; the first delta says who replies."""

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """The reply of the first model that begins one.

        Raises:
            EngineUnavailable: if none can serve now, or the one that began breaks off.
            EngineTimeout: if it takes too long.
            EngineRefused: if it does not accept the request.
        """
        able = _able(self._links, lambda card: _can_chat(card, request))
        for link in able:
            has_begun = False
            try:
                async with aclosing(link.engine.stream(request)) as deltas:
                    async for delta in deltas:
                        yield delta if has_begun else replace(delta, served_by=link.card.origin)
                        has_begun = True
            except FAILURES as error:
                if has_begun or link is able[-1]:
                    raise
                _note(link, error)
            else:
                return


class FallbackEmbedder(_Chain):
    """A `TextEmbedder`."""

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResult:
        """The vectors of the first model that gives some.

        Raises:
            EngineUnavailable: if none can serve now.
            EngineTimeout: if the last takes too long.
            EngineRefused: if one does not accept the request.
        """

        def ask(link: Link) -> Awaitable[EmbeddingResult]:
            dimension = request.dimension or link.card.embedding.default_dimension
            found: Awaitable[EmbeddingResult] = link.engine.embed(replace(request, dimension=dimension))
            return found

        link, result = await self._first(_able(self._links, lambda card: _can_embed(card, request)), ask)
        return replace(result, served_by=link.card.origin)


class FallbackReranker(_Chain):
    """A `Reranker`."""

    async def rerank(self, request: RerankRequest) -> Ranking:
        """The ranking of the first model that gives one.

        Raises:
            EngineUnavailable: if none can serve now.
            EngineTimeout: if the last takes too long.
            EngineRefused: if one does not accept the request.
        """

        def ask(link: Link) -> Awaitable[Ranking]:
            found: Awaitable[Ranking] = link.engine.rerank(request)
            return found

        link, result = await self._first(self._links, ask)
        return replace(result, served_by=link.card.origin)


class FallbackRecognizer(_Chain):
    """A `Recognizer`."""

    @property
    def languages(self) -> Sequence[str]:
        """Those of the first."""
        found: Sequence[str] = self._links[0].engine.languages
        return found

    @property
    def reads_early(self) -> bool:
        """See `Recognizer`: not where servers elsewhere hear some turns."""
        return all(link.card.runs_here for link in self._links)

    async def recognize(self, audio: Samples, *, language: str | None = None, urgent: bool = True) -> Recognition:
        """What the first model hears that can serve.

        Raises:
            EngineUnavailable: if none can serve now.
            EngineTimeout: if the last takes too long.
            EngineRefused: if one does not know the language.
        """

        def ask(link: Link) -> Awaitable[Recognition]:
            found: Awaitable[Recognition] = link.engine.recognize(audio, language=language, urgent=urgent)
            return found

        links = self._links
        if not urgent:  # these come often and may fail: a server elsewhere costs money
            links = tuple(link for link in links if link.card.runs_here) or links[:1]
        link, result = await self._first(_able(links, lambda card: _knows(card, language)), ask)
        return replace(result, served_by=link.card.origin)


class FallbackSynthesizer(_Chain):
    """A `Synthesizer`. A model that does not have the voice speaks with its usual one."""

    @property
    def voices(self) -> Sequence[Voice]:
        """Those of the first."""
        found: Sequence[Voice] = self._links[0].engine.voices
        return found

    @property
    def default_voice(self) -> str:
        """That of the first."""
        return str(self._links[0].engine.default_voice)

    async def speak(
        self,
        text: str,
        *,
        voice: str,
        sample_rate_hz: int,
        rate: float = 1.0,
        note: Callable[[str], None] = lambda _: None,
    ) -> AsyncGenerator[bytes, None]:
        """The sound of the first model that begins some; `note` takes who that is.

        Raises:
            EngineUnavailable: if none can serve now, or the one that began breaks off.
            EngineTimeout: if it takes too long.
        """
        for link in self._links:
            has_begun = False
            try:
                async with aclosing(
                    link.engine.speak(text, voice=voice, sample_rate_hz=sample_rate_hz, rate=rate)
                ) as sound:
                    async for pcm in sound:
                        if not has_begun:
                            note(link.card.origin)
                        has_begun = True
                        yield pcm
            except FAILURES as error:
                if has_begun or link is self._links[-1]:
                    raise
                _note(link, error)
            else:
                return


def speech_of(
    engine: Synthesizer,
    card: ModelCard,
    text: str,
    *,
    voice: str,
    sample_rate_hz: int,
    rate: float,
    note: Callable[[str], None],
) -> AsyncGenerator[bytes, None]:
    """What `engine`, which provides the model of `card`, speaks; `note` takes who does it, before the first sound."""
    if isinstance(engine, FallbackSynthesizer):
        return engine.speak(text, voice=voice, sample_rate_hz=sample_rate_hz, rate=rate, note=note)
    note(card.origin)
    return engine.speak(text, voice=voice, sample_rate_hz=sample_rate_hz, rate=rate)


FALLBACKS: dict[str, type[_Chain]] = {
    "chat": FallbackChat,
    "embedding": FallbackEmbedder,
    "rerank": FallbackReranker,
    "asr": FallbackRecognizer,
    "tts": FallbackSynthesizer,
}
"""By kind of model."""


def _able(links: Sequence[Link], can: Callable[[ModelCard], bool]) -> Sequence[Link]:
    """The first, whose card the request was checked against, and those of the others that can do what it asks for."""
    return [links[0], *(link for link in links[1:] if can(link.card))]


def _can_chat(card: ModelCard, request: ChatRequest) -> bool:
    has_images = any(message.parts for message in request.messages)
    return (
        (card.chat.images or not has_images)
        and (card.chat.tools or not request.tools)
        and (card.chat.response_format or "response_format" not in request.extra)
    )


def _knows(card: ModelCard, language: str | None) -> bool:
    return not language or not card.languages or is_one_of(language, card.languages)


def _can_embed(card: ModelCard, request: EmbeddingRequest) -> bool:
    able = card.embedding
    return (
        (request.dimension is None or able.dimensions is None or request.dimension in able.dimensions)
        and (able.has_sparse or not request.sparse)
        and (able.has_instruct or not request.instruct)
    )


def _unavailable(engine: Any) -> EngineUnavailable | None:
    try:
        engine.check()
    except EngineUnavailable as error:
        return error
    return None


def _note(link: Link, error: EngineError) -> None:
    logger.warning("model %s: another one stands in: %s", link.card.origin, error.for_operators)
