"""Models that stand in for one that cannot serve, in the order of a chain.

For a request over HTTP, only a model that is unavailable, or takes too long, is followed by the next, until one has
begun to reply: a request that one model refuses is refused. In a conversation, any failure of a speech server is
followed by the engine here, and a sentence that broke off is spoken again. A model that cannot do what is asked is left
out.
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
    Voice,
)
from voiceapp.engines.languages import is_one_of
from voiceapp.engines.text_interfaces import EmbeddingRequest, EmbeddingResult, Ranking, RerankRequest
from voiceapp.errors import EngineError, EngineTimeout, EngineUnavailable

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Part = TypeVar("Part")

FAILURES = (EngineUnavailable, EngineTimeout)
"""After which the next model is asked."""


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A model of a chain and what provides it."""

    card: ModelCard
    engine: Any


class _Chain(Provider):
    failures: tuple[type[EngineError], ...] = FAILURES
    restarts = False
    """A reply that broke off is begun again by the next model."""

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

    def _note(self, link: Link, error: EngineError) -> None:
        """A model failed, and the next one is asked."""
        logger.warning("model %s: another one stands in: %s", link.card.origin, error.for_operators)

    async def _first(self, links: Sequence[Link], ask: Callable[[Link], Awaitable[Result]]) -> tuple[Link, Result]:
        """The result of the first engine that gives one."""
        for link in links[:-1]:
            try:
                return link, await ask(link)
            except self.failures as error:
                self._note(link, error)
        return links[-1], await ask(links[-1])

    async def _stream(
        self,
        links: Sequence[Link],
        begin: Callable[[Any], AsyncGenerator[Part, None]],
        note: Callable[[str], None] = lambda _: None,
    ) -> AsyncGenerator[Part, None]:
        """The reply of the first engine that begins one; `note` takes the origin of its model."""
        for link in links:
            has_begun = False
            try:
                async with aclosing(begin(link.engine)) as parts:
                    async for part in parts:
                        if not has_begun:
                            note(link.card.origin)
                        has_begun = True
                        yield part
            except self.failures as error:
                if link is links[-1] or (has_begun and not self.restarts):
                    raise
                self._note(link, error)
            else:
                return


class FallbackChat(_Chain):
    """A `ChatModel`; the first delta says who replies."""

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """The reply of the first model that begins one.

        Raises:
            EngineUnavailable: if none can serve now, or the one that began breaks off.
            EngineTimeout: if it takes too long.
            EngineRefused: if it does not accept the request.
        """
        able = _able(self._links, lambda link: _can_chat(link.card, request))
        noted: list[str] = []
        async with aclosing(self._stream(able, lambda chat: chat.stream(request), noted.append)) as deltas:
            async for delta in deltas:
                yield replace(delta, served_by=noted.pop()) if noted else delta


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

        link, result = await self._first(_able(self._links, lambda link: _can_embed(link.card, request)), ask)
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
        result: Ranking
        link, result = await self._first(self._links, lambda link: link.engine.rerank(request))
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
        """See `Recognizer`: false where another server recognizes some turns."""
        return all(link.card.runs_here for link in self._links)

    async def recognize(
        self,
        audio: Samples,
        *,
        language: str | None = None,
        among: Sequence[str] | None = None,
        urgent: bool = True,
        terms: Sequence[str] = (),
    ) -> Recognition:
        """Recognition by the first model that can serve.

        Raises:
            EngineUnavailable: if none can serve now.
            EngineTimeout: if the last takes too long.
            EngineRefused: if one does not know the language.
        """
        result: Recognition
        link, result = await self._first(
            self._asked(language, urgent=urgent),
            lambda link: link.engine.recognize(audio, language=language, among=among, urgent=urgent, terms=terms),
        )
        return replace(result, served_by=link.card.origin)

    async def translate(self, audio: Samples, *, language: str | None = None) -> Recognition:
        """Translate with the first model that can serve."""
        links = _able(self._links, lambda link: link.card.translates)
        result: Recognition
        link, result = await self._first(links, lambda link: link.engine.translate(audio, language=language))
        return replace(result, served_by=link.card.origin)

    def _asked(self, language: str | None, *, urgent: bool) -> Sequence[Link]:
        """The models to ask, in their order."""
        links = self._links
        if not urgent:  # these come often and may fail: another server costs money
            links = tuple(link for link in links if link.card.runs_here) or links[:1]
        return _able(links, lambda link: _knows(link, language))


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
        async with aclosing(
            self._stream(
                self._asked(voice),
                lambda engine: engine.speak(text, voice=voice, sample_rate_hz=sample_rate_hz, rate=rate),
                note,
            )
        ) as sound:
            async for pcm in sound:
                yield pcm

    def _asked(self, voice: str) -> Sequence[Link]:
        """The models to ask, in their order."""
        return self._links


class _InConversation(_Chain):
    """The chain of one conversation, whose last engine runs here. A model that failed is not asked again."""

    failures = (EngineError,)
    restarts = True
    subject = ""

    def __init__(self, links: Sequence[Link], *, session_id: str) -> None:
        super().__init__(links)
        self._session_id = session_id
        self._failed: set[Link] = set()

    def _note(self, link: Link, error: EngineError) -> None:
        if link not in self._failed:
            self._failed.add(link)
            logger.warning(
                "session %s: %s goes on with the embedded engine: %s",
                self._session_id,
                self.subject,
                error.for_operators,
            )


class ConversationRecognizer(_InConversation, FallbackRecognizer):
    """A `Recognizer` for one conversation: the engine that knows the language."""

    subject = "recognition"

    @property
    def languages(self) -> Sequence[str]:
        """Languages of all engines; empty where one of them knows any."""
        found = [link.engine.languages for link in self._links]
        return tuple(dict.fromkeys(code for codes in found for code in codes)) if all(found) else ()

    @property
    def reads_early(self) -> bool:
        """See `Recognizer`: not where another engine than the embedded one hears the turns."""
        return len(self._links) == 1

    def _asked(self, language: str | None, *, urgent: bool) -> Sequence[Link]:
        able = [link for link in self._links if _knows(link, language)]
        asked = [link for link in able if link not in self._failed and (urgent or link is self._links[-1])]
        if not asked and able and not urgent:
            raise EngineUnavailable("A partial transcript was left out: no engine here knows the language.")
        return asked or able[-1:] or self._links[-1:]  # which refuses in its own words


class ConversationSynthesizer(_InConversation, FallbackSynthesizer):
    """A `Synthesizer` for one conversation: the engine that has the voice speaks, else the first."""

    subject = "speech"

    @property
    def voices(self) -> Sequence[Voice]:
        """Voices of all engines, each name once."""
        found = (voice for link in reversed(self._links) for voice in link.engine.voices)
        return tuple({voice.name: voice for voice in found}.values())

    @property
    def default_voice(self) -> str:
        """That of the first engine with one."""
        return str(self._links[0].engine.default_voice or self._links[-1].engine.default_voice)

    def _asked(self, voice: str) -> Sequence[Link]:
        has_it = (link for link in self._links if any(voice == each.name for each in link.engine.voices))
        chosen, last = next(has_it, self._links[0]), self._links[-1]
        return (last,) if chosen is last or chosen in self._failed else (chosen, last)


FALLBACKS: dict[str, type[_Chain]] = {
    "chat": FallbackChat,
    "embedding": FallbackEmbedder,
    "rerank": FallbackReranker,
    "asr": FallbackRecognizer,
    "tts": FallbackSynthesizer,
}
"""Chains by kind of model."""


def _able(links: Sequence[Link], can: Callable[[Link], bool]) -> Sequence[Link]:
    """The first, whose card the request was checked against, and those of the others that can do what it asks for."""
    return [links[0], *(link for link in links[1:] if can(link))]


def _can_chat(card: ModelCard, request: ChatRequest) -> bool:
    has_images = any(message.parts for message in request.messages)
    return (
        (card.chat.images or not has_images)
        and (card.chat.tools or not request.tools)
        and (card.chat.response_format or "response_format" not in request.extra)
    )


def _knows(link: Link, language: str | None) -> bool:
    return not language or not link.engine.languages or is_one_of(language, link.engine.languages)


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
