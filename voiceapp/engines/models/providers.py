"""The provider objects behind the model cards: built on first use, checked, warmed and closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from voiceapp.catalogue.cards import ChatCapabilities, ModelCard, ModelKind
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.assistant.chat import RetrievalAssistant
from voiceapp.engines.assistant.reading import ReadingChat
from voiceapp.engines.interfaces import Provider
from voiceapp.engines.mcp.connection import connections
from voiceapp.engines.models.fallback import FALLBACKS, Link
from voiceapp.engines.models.inspection import InspectedChat, content_inspector
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.models.service_states import ServiceState
from voiceapp.engines.models.weights import WeightsMissing
from voiceapp.engines.read_aloud import ReadAloudModel
from voiceapp.engines.upstream.http.client import Address, services
from voiceapp.errors import EngineError, EngineUnavailable

logger = logging.getLogger(__name__)

CONVERSATION: tuple[ModelKind, ...] = ("vad", "turn", "asr", "chat", "tts")
"""The kinds whose first model a conversation of this server's own uses."""


SPEECH: tuple[ModelKind, ...] = ("asr", "tts")
"""The kinds of which a conversation goes on with the model here when another server fails."""


SERVICE_LOOK_S = 30.0
"""Between two looks at a service that serves models of this server."""

MOST_OWN = 64
"""Chat models of agents' versions that are kept; each version may have one of its own."""


class Providers:
    """One object for each card. Not safe for several threads; the event loop's thread builds and asks."""

    def __init__(self) -> None:
        self._built: dict[ModelCard, Provider] = {}
        self._inspected: dict[ModelCard, Provider] = {}
        self._reading: dict[ModelCard, Provider] = {}
        self._chains: dict[ModelCard, Provider] = {}
        self._own: dict[ModelCard, None] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._documents: dict[str, RetrievalAssistant] = {}
        """Indexes by their folder, so that all chat models share them; empty: the server's."""
        self._inspector = content_inspector()

    def get(self, card: ModelCard) -> Any:
        """The object that provides a model, the same one while it is used. Chat is inspected where that is set up."""
        self._use(card)
        if card not in self._inspected:
            inspector = content_inspector(card.forbidden) if card.forbidden else self._inspector
            if card.kind != "chat" or inspector is None:
                return self.uninspected(card)
            self._inspected[card] = InspectedChat(self.uninspected(card), inspector)
        return self._inspected[card]

    def uninspected(self, card: ModelCard) -> Any:
        """Return the provider of a model behind another, whose requests and replies are inspected there."""
        self._use(card)
        if not card.fallbacks:
            return self._one(card)
        if card not in self._chains:
            self._chains[card] = FALLBACKS[card.kind](self.links(card))
        return self._chains[card]

    def links(self, card: ModelCard) -> list[Link]:
        """A model and those that stand in for it; one that this server had when they were named is left out."""
        known = {name: catalogue().find(name, card.kind) for name in card.fallbacks}
        if gone := [name for name, found in known.items() if found is None]:
            logger.warning("model %s: this server has no %s, which should stand in for it", card.name, ", ".join(gone))
        return [Link(each, self._one(each)) for each in (card, *filter(None, known.values()))]

    def _one(self, card: ModelCard) -> Any:
        """Return the provider without its stand-ins. Agents whose models differ in what they read share one."""
        model = _plain(card)
        if model not in self._built:
            self._built[model] = import_string(card.provider)(**card.options)
        found: Any = self._built[model]
        if not card.chat.reads_sources:
            return found
        if card not in self._reading:
            self._reading[card] = ReadingChat(found, self.documents(card.documents))
        return self._reading[card]

    def documents(self, folder: str) -> RetrievalAssistant:
        """Return what finds passages in the folder of an agent, or if that is empty in the server's documents."""
        if folder not in self._documents:
            self._documents[folder] = RetrievalAssistant(documents=folder)
        return self._documents[folder]

    def built(self) -> list[Provider]:
        return [*self._inspected.values(), *self._built.values(), *self._documents.values()]

    def _use(self, card: ModelCard) -> None:
        """Note that a chat card is used. Of those of agents' versions, the one not used for longest is let go."""
        if card.kind != "chat" or card == catalogue().find(card.name, "chat"):
            return
        self._own[card] = self._own.pop(card, None)
        if len(self._own) <= MOST_OWN:
            return
        del self._own[(oldest := next(iter(self._own)))]
        for wrapped in (self._inspected, self._reading, self._chains):
            wrapped.pop(oldest, None)
        others = (*self._own, *catalogue().of_kind("chat"))
        if oldest.documents not in {other.documents for other in others}:
            self._documents.pop(oldest.documents, None)
        model = _plain(oldest)
        is_shared = any(_plain(other) == model for other in others)
        if not is_shared and (provider := self._built.pop(model, None)) is not None:
            leaving = asyncio.get_running_loop().create_task(_close_unused(provider))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)


def _plain(card: ModelCard) -> ModelCard:
    """The card of a model without what agents add to it."""
    return replace(card, aliases=(), fallbacks=(), documents="", forbidden=(), chat=ChatCapabilities())


async def _close_unused(provider: Provider) -> None:
    await asyncio.sleep(settings.SESSION_LIFETIME_S)  # sessions that have it are over by then
    await provider.close()


@cache
def providers() -> Providers:
    return Providers()


def provider_of(card: ModelCard) -> Any:
    """The object that provides a model in this process."""
    return providers().get(card)


def links_in_use(kind: ModelKind) -> list[Link]:
    """The models of a kind that a conversation uses, with what provides them."""
    return [Link(card, provider_of(card)) for card in in_use(kind)]


def realtime_model_of(card: ModelCard) -> Any:
    """The object that serves sessions with a model: one of synthesis reads text aloud in them."""
    return ReadAloudModel(provider_of(card)) if card.kind == "tts" else provider_of(card)


def in_use(kind: ModelKind) -> list[ModelCard]:
    """The models of a kind that a conversation uses: the first, and for speech the one here that stands in for it."""
    cards = catalogue().of_kind(kind)
    if kind not in SPEECH or not cards or cards[0].runs_here:
        return cards[:1]
    return cards[:1] + [card for card in cards if card.runs_here][:1]


def recognized_languages() -> tuple[str, ...]:
    """ISO 639-1 codes that conversations understand; empty where one of their models knows any."""
    found = [card.languages for card in in_use("asr")]
    return tuple(dict.fromkeys(code for codes in found for code in codes)) if all(found) else ()


def _in_use() -> Iterator[ModelCard]:
    """The models that a conversation of this server's own uses; empty where all models run on others."""
    for kind in CONVERSATION if settings.EMBEDDED_MODELS else ():
        yield from in_use(kind)


def troubles() -> list[EngineError]:
    """Return the errors of other speech servers, without which conversations go on."""
    found = (provider_of(card).trouble for kind in SPEECH for card in in_use(kind))
    return [error for error in found if error is not None]


def service_states() -> list[ServiceState]:
    """Return the states of the services that serve models of this server."""
    for service in filter(None, settings.UPSTREAMS):  # one with a realtime model only is asked by no other client here
        services().at(Address(**service.address))
    for card in catalogue().of_services():
        provider_of(card)
    return [server.state for server in services().all()]


async def probe_services() -> list[ServiceState]:
    """Ask each service whether it is there; 2 s at most. Returns what is known of them then."""
    service_states()
    await asyncio.gather(*(server.probe() for server in services().all()))
    return service_states()


async def look_at_services() -> None:
    """Ask each service now and then whether it is there, until cancelled; without services it returns."""
    while service_states():
        await probe_services()
        await asyncio.sleep(SERVICE_LOOK_S)


async def probe() -> None:
    """Let the models of a conversation find out whether the servers that they need are there; 2 s at most. A server
    without conversations of its own asks the servers of all its models."""
    cards = [*_in_use()]
    if not cards:
        cards = [*catalogue().all()]
        await probe_services()
    await asyncio.gather(*(provider_of(card).probe() for card in cards))


def unavailable() -> list[EngineError]:
    """Return why the models of a conversation cannot serve now; empty when they can. Missing weights are one reason.

    A server without conversations of its own is available while one of its models is.
    """
    if not (cards := [*_in_use()]):
        troubles = {state.name: state.trouble for state in service_states()}
        found = [troubles.get(card.service) or provider_of(card).trouble for card in catalogue().all()]
        return [] if not all(found) else [error for error in found[:1] if error is not None]
    errors: list[EngineError] = []
    for card in cards:
        try:
            provider_of(card).check()
        except EngineError as error:
            errors.append(error)
    titles = [title for error in errors if isinstance(error, WeightsMissing) for title in error.titles]
    others = [error for error in errors if not isinstance(error, WeightsMissing)]
    return [WeightsMissing(list(dict.fromkeys(titles))), *others] if titles else others


async def warm_up() -> None:
    """Build and load what a conversation uses, so that the first caller does not wait for it.

    Missing weights do not stop the server: `unavailable` names them, and everything else is served.
    """
    if settings.CHAT_ENGINE_NOTE:
        logger.warning(settings.CHAT_ENGINE_NOTE)
    async with asyncio.TaskGroup() as together:
        held_elsewhere = (card for card in catalogue().of_kind("realtime") if card.is_held_elsewhere)
        for card in (*_in_use(), *held_elsewhere):
            together.create_task(_warm(card, provider_of(card)), name=f"warm up {card.name}")


async def _warm(card: ModelCard, provider: Provider) -> None:
    try:
        await provider.warm()
    except EngineUnavailable as missing:
        logger.warning("model %s: not ready: %s", card.name, missing.for_operators)


async def index_documents(folder: Path) -> None:
    await RetrievalAssistant(cache_dir=folder).warm()


def connect_tools() -> None:
    """Begin to connect to the MCP servers whose tools every conversation is offered."""
    for connection in connections().values():
        if connection.server.always:
            connection.connect()


async def close() -> None:
    """End child processes and connections of the providers, and the lanes' threads."""
    for provider in providers().built():
        await provider.close()
    for server in services().all():  # also those that no model is of
        await server.close()
    for connection in connections().values():
        await connection.close()
    lanes().close()
    lanes.cache_clear()
