"""Which models there are: names, aliases, kinds, and the one provider object behind each.

The only place where the engines meet Django: it reads the `VOICE_MODELS` setting.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, cast, get_args

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from voiceapp.engines.lanes import lanes
from voiceapp.errors import EngineUnavailable, ModelNotFound

logger = logging.getLogger(__name__)

Kind = Literal["realtime", "asr", "tts", "chat", "turn", "embedding", "rerank", "image", "video"]

WARMED: tuple[Kind, ...] = ("realtime", "turn", "asr", "tts", "chat")
"""Whose first model a conversation needs."""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One entry of the `VOICE_MODELS` setting."""

    name: str
    kind: Kind
    provider: str
    """Dotted path of the class that provides it; called once per process with `options`."""
    title: str = ""
    aliases: tuple[str, ...] = ()
    """Other names it answers to: those that client libraries have built in."""
    options: dict[str, Any] = field(default_factory=dict, hash=False)


class Catalogue:
    """Cards by name; providers built on first use and kept."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        """Raises ImproperlyConfigured: an entry is incomplete, or two of one kind share a name."""
        self._cards = [_card(entry) for entry in entries]
        self._providers: dict[tuple[str, Kind], object] = {}
        seen: set[tuple[str, Kind]] = set()
        for card in self._cards:
            for name in (card.name, *card.aliases):
                if (name, card.kind) in seen:
                    raise ImproperlyConfigured(f"VOICE_MODELS names the {card.kind} model '{name}' twice.")
                seen.add((name, card.kind))

    def get(self, name: str, kind: Kind) -> ModelCard:
        """Raises ModelNotFound."""
        for card in self._cards:
            if card.kind == kind and (name == card.name or name in card.aliases):
                return card
        raise ModelNotFound(f"There is no {kind} model '{name[:80]}' on this server.")

    def default(self, kind: Kind) -> ModelCard:
        """The first of its kind. Raises ModelNotFound."""
        for card in self._cards:
            if card.kind == kind:
                return card
        raise ModelNotFound(f"This server has no {kind} model.")

    def names(self, kind: Kind) -> list[ModelCard]:
        """All cards of a kind, in the order of the setting."""
        return [card for card in self._cards if card.kind == kind]

    def provider(self, card: ModelCard) -> Any:
        """The object that provides a model; the same one every time."""
        key = (card.name, card.kind)
        if key not in self._providers:
            self._providers[key] = import_string(card.provider)(**card.options)
        return self._providers[key]

    def providers(self) -> list[object]:
        """Those built so far."""
        return list(self._providers.values())


def _card(entry: dict[str, Any]) -> ModelCard:
    missing = [name for name in ("name", "kind", "provider") if not entry.get(name)]
    if missing or entry["kind"] not in get_args(Kind):
        raise ImproperlyConfigured(f"VOICE_MODELS: {entry!r} needs name, provider and a kind out of {get_args(Kind)}.")
    return ModelCard(
        name=entry["name"],
        kind=cast(Kind, entry["kind"]),
        provider=entry["provider"],
        title=entry.get("title", "") or entry["name"],
        aliases=tuple(entry.get("aliases", ())),
        options=dict(entry.get("options", {})),
    )


@cache
def catalogue() -> Catalogue:
    """The catalogue of this process."""
    return Catalogue(settings.VOICE_MODELS)


async def warm_up() -> None:
    """Build and load what a conversation needs, so that the first caller does not wait for it.

    Missing weights are no error here: readiness says so, and the server serves what it can.
    """
    models = catalogue()
    cards = [card for kind in WARMED for card in models.names(kind)[:1]]
    async with asyncio.TaskGroup() as together:
        for card in cards:
            together.create_task(_warm(card, models.provider(card)))


async def _warm(card: ModelCard, provider: object) -> None:
    if not hasattr(provider, "warm"):
        return
    try:
        await provider.warm()
    except EngineUnavailable as missing:
        logger.warning("model %s is not ready: %s", card.name, missing.message)


async def close() -> None:
    """End child processes and connections of the providers, and the lanes' threads."""
    for provider in catalogue().providers():
        if hasattr(provider, "close"):
            await provider.close()
    lanes().close()
    lanes.cache_clear()
