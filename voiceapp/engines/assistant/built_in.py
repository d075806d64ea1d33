"""The built-in assistant: skills reply to what they know, documents are quoted, and a language model does the rest. A
model that reads sources gets the documents' passages itself, in place of the quotation.

A caller's own instructions and tools are for the language model: with them it replies to everything.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from voiceapp.catalogue.cards import ModelCard
from voiceapp.engines.assistant.skills import SkillReply
from voiceapp.engines.interfaces import Call, ChatDelta, ChatProvider, ChatRequest, ChatUsage, Provider
from voiceapp.engines.models.providers import providers
from voiceapp.engines.models.tokens import estimated
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.errors import EngineError, EngineRefused, EngineUnavailable

logger = logging.getLogger(__name__)

FOR_THE_MODEL = frozenset(("response_format", "logprobs", "top_logprobs", "logit_bias", "stop_token_ids"))
"""Parameters that only a language model can follow."""

REFUSED_AS_SENT = frozenset((0, 400, 413, 422))
"""Statuses of another server that are about the request; 0 where none was asked."""
MOST_SENTENCES = 2
"""Length of a spoken reply of the language model without instructions of a caller's own."""


class Assistant(Provider):
    """A `ChatModel`. One per process."""

    def __init__(
        self, *, model: ModelCard, is_brief: bool = False, converses: bool = True, documents: str = ""
    ) -> None:
        """`model` is the language model's card, `documents` the folder of an agent's own. With `is_brief` it speaks two
        sentences at a time, for a small model does not come to an end by itself. Without `converses` it replies only to
        the instructions, functions and formats of programs, and starts with the first of them."""
        self._converses = converses
        self._is_brief = is_brief
        self._known = providers().documents(documents)
        self._card = replace(model, documents=documents)
        self._quotes = not model.chat.reads_sources

    @property
    def _model(self) -> ChatProvider:
        found: ChatProvider = providers().uninspected(self._card)
        return found

    def check(self) -> None:
        """See `Provider`; without its language model it still replies to much."""
        self._known.check()

    async def warm(self) -> None:
        """Build the index over the documents, and load the language model if it converses."""
        await self._known.warm()
        if not self._converses:
            return
        try:
            await self._model.warm()
        except EngineUnavailable as missing:
            logger.warning("model %s: not ready: %s", self._card.name, missing.for_operators)

    async def prepare(self, call: Call) -> None:
        if self._converses:
            await self._model.prepare(call)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        is_for_the_model = _is_for_the_model(request)
        reply: SkillReply | None = None
        if not is_for_the_model or _is_conversation(request):
            reply = await self._known.known(request, reads=self._quotes)
            if reply is None and not is_for_the_model and not self._converses:
                reply = await self._known.unknown(request)
        elif (
            request.messages[-1:] and request.messages[-1].role == "assistant"
        ):  # a page that was cut off asks with instructions for the rest
            reply = await self._known.rest(request)
        if reply is not None:
            async with aclosing(self._known.say(reply, request)) as deltas:
                async for delta in deltas:
                    yield delta
            return
        has_begun = False
        is_brief = self._is_brief and request.facts.speaks and not is_for_the_model
        try:
            async with aclosing(self._written(request, is_brief=is_brief)) as deltas:
                async for delta in deltas:
                    has_begun = True
                    yield delta
        except EngineError as error:
            if has_begun or is_for_the_model or _is_about_the_request(error, request):
                raise
            logger.warning("model %s: %s", self._card.name, error.for_operators)
            async with aclosing(self._known.say(await self._known.unknown(request), request)) as deltas:
                async for delta in deltas:
                    yield delta

    async def _written(self, request: ChatRequest, *, is_brief: bool) -> AsyncGenerator[ChatDelta, None]:
        """The language model's reply; a brief one ends with its second sentence."""
        splitter, sentences, unfinished, tokens = SentenceSplitter(first_clause_chars=0), 0, 0, 0
        async with aclosing(self._model.stream(request)) as deltas:
            async for delta in deltas:
                tokens += 1
                delta = replace(delta, author=delta.author or self._card.author) if tokens == 1 else delta
                pieces = splitter.feed(delta.text) if is_brief else []
                sentences += len(pieces)
                unfinished += len(delta.text) - sum(map(len, pieces))
                if sentences < MOST_SENTENCES:
                    yield delta
                    continue
                yield replace(delta, text=delta.text[: max(0, len(delta.text) - unfinished)])
                asked = sum(estimated(message.content) for message in request.messages)
                yield ChatDelta(usage=ChatUsage(asked, tokens), finish_reason="stop")
                return


def _is_about_the_request(error: EngineError, request: ChatRequest) -> bool:
    """Return whether a program can correct its request, such as too long a conversation. A person hears a reply."""
    is_refused = isinstance(error, EngineRefused) and error.status_elsewhere in REFUSED_AS_SENT
    return is_refused and not request.facts.speaks


def _is_conversation(request: ChatRequest) -> bool:
    """Return whether a person speaks in a session without functions or a format of a program's: what skills know
    exactly is then better than what a model with instructions makes of it."""
    asked_last = bool(request.messages) and request.messages[-1].role == "user"
    has_functions = bool(request.tools) and request.tool_choice != "none" and not request.facts.are_tools_ours
    is_plain = not has_functions and FOR_THE_MODEL.isdisjoint(request.extra)
    return request.facts.started_at is not None and asked_last and is_plain


def _is_for_the_model(request: ChatRequest) -> bool:
    if request.facts.is_idle_prompt:
        return False
    has_instructions = any(message.role == "system" and message.content.strip() for message in request.messages)
    return has_instructions or bool(request.tools) or not FOR_THE_MODEL.isdisjoint(request.extra)
