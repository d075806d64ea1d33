"""The cards of models that services with this server's interface serve, and which models stand in for which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from voiceapp.catalogue.cards import ChatCapabilities, EmbeddingCapabilities, ModelCard
from voiceapp.catalogue.defaults import CHAT_ALIASES, VOICE
from voiceapp.catalogue.embedders import EMBEDDERS
from voiceapp.catalogue.servers import UpstreamSettings, named

_UPSTREAM = "voiceapp.engines.upstream"
RENAMED = ("embedding", "rerank")
"""Kinds whose models here are called `embedded-NAME` or `server-NAME` where a service serves NAME."""
CHAINED = ("chat", "embedding", "rerank", "asr", "tts", "realtime")
"""Kinds of which one model can stand in for another."""


def upstream_cards(service: UpstreamSettings) -> list[ModelCard]:
    """Cards of the models of a service with this server's interface."""
    if not service:
        return []
    realtime = [_realtime_card(service)] if service.is_realtime else []
    return [*realtime, *_text_cards(service), *_task_cards(service)]


def _realtime_card(service: UpstreamSettings) -> ModelCard:
    is_direct = service.is_direct and not service.is_openais
    return ModelCard(
        service.alias,
        "realtime",
        f"{_UPSTREAM}.realtime.provider.UpstreamRealtime",
        title=f"{service.model or 'Model'} (another service)",
        aliases=(service.model,) if service.model not in ("", service.alias, VOICE) else (),
        options=service.realtime_options,
        service=service.alias,
        transports=("webrtc", "aoq", "websocket") if is_direct else ("aoq", "webrtc", "websocket"),
        forwards_events=not service.is_openais,
        forwards_offers=is_direct,
        forwards_calls=service.is_direct and service.is_openais,
    )


def _text_cards(service: UpstreamSettings) -> Iterator[ModelCard]:
    known = {card.name: card.embedding for card in EMBEDDERS}
    for ours, theirs in named(service.chat_models):
        yield ModelCard(
            ours,
            "chat",
            f"{_UPSTREAM}.http.chat.UpstreamChat",
            options=service.model_options(theirs),
            service=service.alias,
            chat=ChatCapabilities(images=service.sees_images, tools=True, response_format=True),
        )
    for ours, theirs in named(service.embedding_models):
        able = known.get(theirs, EmbeddingCapabilities(has_sparse=True, has_instruct=True))
        yield ModelCard(
            ours,
            "embedding",
            f"{_UPSTREAM}.http.embedding.UpstreamEmbedder",
            options=service.model_options(theirs),
            service=service.alias,
            embedding=replace(able, default_dimension=None),
        )
    for ours, theirs in named(service.rerank_models):
        provider = f"{_UPSTREAM}.http.rerank.UpstreamReranker"
        yield ModelCard(ours, "rerank", provider, options=service.model_options(theirs), service=service.alias)


def _task_cards(service: UpstreamSettings) -> Iterator[ModelCard]:
    provider = f"{_UPSTREAM}.http.tasks.RelayedTasks"
    for ours, theirs in named(service.image_models):
        yield ModelCard(ours, "image", provider, options=service.model_options(theirs), service=service.alias)
    for ours, theirs in named(service.video_models):
        yield ModelCard(ours, "video", provider, options=service.model_options(theirs), service=service.alias)


def with_services(cards: Sequence[ModelCard], services: Sequence[UpstreamSettings]) -> list[ModelCard]:
    """The cards of this server and, behind them, those of the services, whose names come first: a model here gives up
    an alias that is taken, and gets another name when its own is."""
    theirs = [card for service in services for card in upstream_cards(service)]
    taken = {(card.kind, name) for card in theirs for name in card.names}
    return [*(_without(card, {name for kind, name in taken if kind == card.kind}) for card in cards), *theirs]


def _without(card: ModelCard, taken: set[str]) -> ModelCard:
    is_renamed = card.name in taken and card.kind in RENAMED
    return replace(
        card,
        name=card.origin.replace("/", "-") if is_renamed else card.name,
        aliases=tuple(alias for alias in card.aliases if alias not in taken),
    )


def without_embedded(cards: Sequence[ModelCard]) -> list[ModelCard]:
    """The cards of models that other servers run. The first of each kind takes over the names that client programs have
    built in from the models that run here."""
    kept: list[ModelCard] = []
    for card in (card for card in cards if not card.runs_here):
        if card.kind not in {each.kind for each in kept}:
            gone = [each for each in cards if each.runs_here and each.kind == card.kind]
            names = [name for each in gone for name in (each.names if each.name == VOICE else each.aliases)]
            taken = {name for each in cards if each not in gone and each.kind == card.kind for name in each.names}
            listening = {name for each in gone for name in each.listens_only}  # the service gives responses
            card = replace(
                card,
                aliases=(*card.aliases, *(name for name in names if name not in taken | listening)),
                input_rates_hz={name: hz for each in gone for name, hz in each.input_rates_hz.items()},
            )
        kept.append(card)
    return kept


def talks_with(cards: Sequence[ModelCard], name: str) -> list[ModelCard]:
    """The cards with the chat model of a name first, which conversations then use, under the names that client programs
    have built in.

    Raises:
        ImproperlyConfigured: if no chat model has this name.
    """
    chosen = next((card for card in cards if card.kind == "chat" and card.name == name), None)
    if chosen is None:
        raise ImproperlyConfigured(f"CHAT_MODEL is {name!r}, which is none of UPSTREAM_CHAT_MODELS.")
    others = [card for card in cards if card is not chosen]
    first = next((card for card in others if card.kind == "chat"), chosen)
    inherited = tuple(alias for alias in first.aliases if alias in CHAT_ALIASES and alias != name)
    others = [replace(card, aliases=()) if card is first else card for card in others]
    return [replace(chosen, aliases=inherited), *others]


def with_fallbacks(cards: Sequence[ModelCard], chains: Sequence[str]) -> list[ModelCard]:
    """The cards with the models that stand in for them, of chains such as `plus>plus-there>assistant`.

    Raises:
        ImproperlyConfigured: if a chain names a model that does not exist, or models of several kinds, or if a model of
            conversations could not stand in.
    """
    by_name: dict[tuple[str, str], ModelCard] = {(card.kind, name): card for card in cards for name in card.names}
    chained: dict[tuple[str, str], dict[str, Any]] = {}
    for chain in chains:
        names = [name.strip() for name in chain.split(">")]
        kind = next((kind for kind in CHAINED if all((kind, name) in by_name for name in names)), "")
        found = [by_name[kind, name] for name in names] if kind else []
        if len({card.name for card in found}) < max(2, len(names)):
            raise ImproperlyConfigured(
                "MODEL_FALLBACKS holds chains such as plus>assistant of different models of one kind "
                f"({', '.join(CHAINED)}), which {chain!r} is not."
            )
        if any(card.forwards_offers or card.forwards_calls for card in found):
            raise ImproperlyConfigured(f"MODEL_FALLBACKS: {chain!r} needs services with UPSTREAM_MEDIA=bridged.")
        if kind == "realtime" and not all(card.service for card in found[:-1]):
            raise ImproperlyConfigured(f"MODEL_FALLBACKS: in {chain!r}, the model of this server has to be the last.")
        # What one of them does not read as it is, the first is not sent as it is.
        chained[kind, found[0].name] = {
            "fallbacks": tuple(card.name for card in found[1:]),
            "forwards_events": all(card.forwards_events for card in found),
        }
    return [replace(card, **chained.get((card.kind, card.name), {})) for card in cards]
