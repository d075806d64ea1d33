"""Models that stand in for one that cannot serve, in the order of a chain.

For a request over HTTP, only a model that is unavailable, or takes too long, is followed by the next, until one has
begun to reply: a request that one model refuses is refused. In a conversation, any failure of a speech server is
followed by the engine here, and a sentence that broke off is spoken again; where a listener waits for one, the next is
asked beside it. A model that cannot do what is asked is left out.
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
    CLAIM_S,
    ENGINE_SAMPLE_RATE_HZ,
    Call,
    ChatDelta,
    ChatRequest,
    Provider,
    RealtimeStream,
    Recognition,
    Samples,
    Voice,
)
from voiceapp.engines.languages import is_one_of
from voiceapp.engines.patience import deadlines
from voiceapp.engines.text_interfaces import EmbeddingRequest, EmbeddingResult, Ranking, RerankRequest
from voiceapp.errors import EngineError, EngineTimeout, EngineUnavailable

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Part = TypeVar("Part")

BESIDE_SHARE = 0.05
"""Part of its length by which a longer recording is waited for longer."""
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
    gap_s: float | None = None
    """Longest pause between two parts of a reply."""
    beside_s: float | None = None
    """Time after which the next model is asked beside one that has not begun."""

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
        await asyncio.gather(*(link.engine.probe() for link in self._links))

    async def prepare(self, call: Call) -> None:
        await self._links[0].engine.prepare(call)

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

    def _served(self, link: Link) -> None:
        """A model gave all that it was asked for."""

    async def _first(
        self, links: Sequence[Link], ask: Callable[[Link], Awaitable[Result]], *, beside_s: float | None = None
    ) -> tuple[Link, Result]:
        """The result of the first engine that gives one. One that is alone is asked at once, and not in a task: of a
        lull's reading and judgement, the reading, which needs an idle thread, is then first in the lane."""
        if len(links) == 1:
            return links[0], await ask(links[0])

        async def begin(link: Link) -> AsyncGenerator[tuple[Link, Result], None]:
            yield link, await ask(link)

        async with aclosing(self._stream(links, begin, beside_s=beside_s)) as results:
            found = await anext(results)
            self._served(found[0])
            return found

    async def _stream(
        self,
        links: Sequence[Link],
        begin: Callable[[Link], AsyncGenerator[Part, None]],
        note: Callable[[str], None] = lambda _: None,
        *,
        beside_s: float | None = None,
    ) -> AsyncGenerator[Part, None]:
        """The reply of the first engine that begins one; `note` takes the origin of its model. The next one is asked
        when one fails, and beside one that has not begun after `beside_s`."""
        waiting = list(links)
        asked: dict[asyncio.Task[Part | None], tuple[Link, AsyncGenerator[Part, None]]] = {}
        is_late = False
        try:
            while waiting or asked:
                if waiting and (is_late or not asked):
                    _ask(asked, waiting[0], begin(waiting.pop(0)))
                wait_s = beside_s if waiting else None
                done, _ = await asyncio.wait(asked, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
                if is_late := not done:
                    continue
                task = next(task for task in asked if task in done)
                link, parts = asked.pop(task)
                is_alone, has_won, has_begun = not (waiting or asked), False, False
                try:
                    part = task.result()
                    if part is None and not is_alone:
                        raise EngineUnavailable("The model gave nothing.")
                    # One that only thinks may fail yet: those beside it go on.
                    if isinstance(part, ChatDelta) and (
                        part.is_waiting or (asked and part.reasoning and not part.text)
                    ):
                        _ask(asked, link, parts)
                        yield part
                        continue
                    for late, _ in asked.values():
                        self._note(late, EngineTimeout("The model did not begin in time."))
                    await _stop(asked)
                    note(link.card.origin)
                    has_won = True
                    async with aclosing(parts):
                        while part is not None:
                            has_begun = has_begun or not isinstance(part, ChatDelta) or part.has_words
                            yield part
                            part = await self._following(parts)
                    self._served(link)
                    return
                except self.failures as error:
                    if has_won:  # those that were asked beside it were told to stop
                        waiting = list(links[links.index(link) + 1 :]) if self.restarts or not has_begun else []
                        is_alone = not waiting
                    if is_alone:
                        raise
                    self._note(link, error)
        finally:
            await _stop(asked)

    async def _following(self, parts: AsyncGenerator[Part, None]) -> Part | None:
        """The next part of a reply that has begun; None at its end.

        Raises:
            EngineUnavailable: if it does not come within `gap_s`: the reply is broken, and not only late.
        """
        try:
            async with asyncio.timeout(self.gap_s):
                return await anext(parts, None)
        except TimeoutError as error:
            raise EngineUnavailable("The model stopped in the middle.") from error


class FallbackChat(_Chain):
    """A `ChatModel`; the first delta says who replies."""

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        able = _able(self._links, lambda link: _can_chat(link.card, request))
        # A caller who listens does not wait for a model that may stay silent for good.
        beside_s = deadlines().beside_s if request.facts.started_at is not None else None
        noted: list[str] = []
        under_way = 0

        async def begin(link: Link) -> AsyncGenerator[ChatDelta, None]:
            nonlocal under_way
            under_way += 1
            try:
                async with aclosing(link.engine.stream(request)) as deltas:
                    async for delta in deltas:
                        yield delta
            except EngineError:
                under_way -= 1
                raise

        replies = self._stream(able, begin, noted.append, beside_s=beside_s)
        async with aclosing(replies) as deltas:
            async for delta in deltas:
                if noted:
                    origin = noted.pop()
                    writer = next(link.card.author for link in able if link.card.origin == origin)
                    delta = replace(delta, served_by=origin, author=delta.author or writer, dropped=under_way - 1)
                    under_way = 1
                yield delta


class FallbackEmbedder(_Chain):
    """A `TextEmbedder`."""

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResult:
        def ask(link: Link) -> Awaitable[EmbeddingResult]:
            dimension = request.dimension or link.card.embedding.default_dimension
            found: Awaitable[EmbeddingResult] = link.engine.embed(replace(request, dimension=dimension))
            return found

        link, result = await self._first(_able(self._links, lambda link: _can_embed(link.card, request)), ask)
        return replace(result, served_by=link.card.origin)


class FallbackReranker(_Chain):
    async def rerank(self, request: RerankRequest) -> Ranking:
        result: Ranking
        link, result = await self._first(self._links, lambda link: link.engine.rerank(request))
        return replace(result, served_by=link.card.origin)


class FallbackRecognizer(_Chain):
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
        result: Recognition
        link, result = await self._first(
            self._asked(language, urgent=urgent),
            lambda link: link.engine.recognize(audio, language=language, among=among, urgent=urgent, terms=terms),
            beside_s=self.beside_s and self.beside_s + BESIDE_SHARE * len(audio) / ENGINE_SAMPLE_RATE_HZ,
        )
        return replace(result, served_by=link.card.origin)

    async def translate(self, audio: Samples, *, language: str | None = None) -> Recognition:
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
    """A `Synthesizer`. A model that does not have the voice speaks with its usual one; `note` takes who speaks."""

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
        async with aclosing(
            self._stream(
                self._asked(voice),
                lambda link: link.engine.speak(text, voice=voice, sample_rate_hz=sample_rate_hz, rate=rate),
                note,
                beside_s=self.beside_s,
            )
        ) as sound:
            async for pcm in sound:
                yield pcm

    def _asked(self, voice: str) -> Sequence[Link]:
        """The models to ask, in their order."""
        return self._links


class _InConversation(_Chain):
    """The chain of one conversation, whose last engine runs here. A model that failed, or was slow twice in a row, is
    not asked again."""

    failures = (EngineError,)
    restarts = True
    subject = ""

    def __init__(self, links: Sequence[Link], *, session_id: str) -> None:
        super().__init__(links)
        self._session_id = session_id
        self._failed: set[Link] = set()
        self._slow: set[Link] = set()

    def _served(self, link: Link) -> None:
        self._slow.discard(link)

    def _note(self, link: Link, error: EngineError) -> None:
        if isinstance(error, EngineTimeout) and link not in self._slow:
            self._slow.add(link)
        elif link not in self._failed:
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
    beside_s = 2.0

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
    beside_s = 1.8
    gap_s = 1.5

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


class FallbackRealtime(_Chain):
    """A `RealtimeModel` of services. A conversation goes on with another service of the chain, in a session that knows
    what was said; for a model of this server, which may be the last, callers begin again."""

    voices: Sequence[Voice] = ()
    default_voice = ""

    def __init__(self, links: Sequence[Link]) -> None:
        super().__init__(links)
        self._prepared: dict[str, Link] = {}
        """Models that were reached for sessions which have not begun, by their id."""

    async def prepare(self, call: Call) -> None:
        """See `Provider`: reach the first that can be.

        Raises:
            EngineError: if the last cannot, or one refuses.
        """

        async def reach(link: Link) -> None:
            link.engine.check()
            await link.engine.prepare(call)

        self._prepared[call.session_id], _ = await self._first(self._links, reach)
        asyncio.get_running_loop().call_later(CLAIM_S, self._prepared.pop, call.session_id, None)

    def abandon(self, call: Call) -> None:
        if link := self._prepared.pop(call.session_id, None):
            link.engine.abandon(call)

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> RealtimeStream:
        chosen = self._prepared.pop(call.session_id, self._links[0])
        others = [link.engine for link in self._links if link is not chosen and link.card.service]
        found: RealtimeStream = chosen.engine.open(call, tasks, *([others] if chosen.card.service else []))
        return found


FALLBACKS: dict[str, type[_Chain]] = {
    "chat": FallbackChat,
    "embedding": FallbackEmbedder,
    "rerank": FallbackReranker,
    "asr": FallbackRecognizer,
    "tts": FallbackSynthesizer,
    "realtime": FallbackRealtime,
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


def _ask(
    asked: dict[asyncio.Task[Part | None], tuple[Link, AsyncGenerator[Part, None]]],
    link: Link,
    parts: AsyncGenerator[Part, None],
) -> None:
    """Wait for the next part of a reply beside others."""
    task: asyncio.Task[Part | None] = asyncio.create_task(_next(parts), name=f"ask {link.card.origin}")
    asked[task] = (link, parts)


async def _next(parts: AsyncGenerator[Part, None]) -> Part | None:
    return await anext(parts, None)


async def _stop(asked: dict[asyncio.Task[Part | None], tuple[Link, AsyncGenerator[Part, None]]]) -> None:
    """Ask for no more."""
    for task in asked:
        task.cancel()
    try:
        await asyncio.gather(*asked, return_exceptions=True)
    finally:
        left = [*asked.values()]
        asked.clear()
        for _, parts in left:
            await parts.aclose()


def _unavailable(engine: Any) -> EngineUnavailable | None:
    try:
        engine.check()
    except EngineUnavailable as error:
        return error
    return None
