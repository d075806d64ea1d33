"""The models of this server, in OpenAI's words: every name that may be asked for, aliases too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

from voiceapp.accounts.auth import Caller
from voiceapp.agents.answering import listed
from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.catalogue.defaults import VOICE
from voiceapp.catalogue.lookup import catalogue
from voiceapp.catalogue.privacy import leaves
from voiceapp.compatible.schemas import ModelCapabilities, ModelEntry
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import ModelNotFound

INTERNAL: tuple[ModelKind, ...] = ("vad", "turn")
"""Kinds that no caller asks for by name."""
SINCE = 1_767_225_600
"""Creation time of all models, in Unix seconds: clients want a number, and most have none that is known."""


async def visible(caller: Caller) -> list[ModelEntry]:
    """Return the models that this caller may use, agents among them."""
    voice = catalogue().find(VOICE, "realtime")
    agents = await run_in_db_thread(listed, is_guest=caller.is_guest) if voice else []
    cards = [replace(voice, name=name, aliases=()) for name in agents if voice and name != VOICE]
    return list(_visible(caller, cards))


async def one(caller: Caller, name: str) -> ModelEntry:
    """One model as OpenAI's clients list it.

    Raises:
        ModelNotFound: if no model has this name.
    """
    for model in await visible(caller):
        if model.id == name:
            return model
    raise ModelNotFound(f"There is no model '{name[:80]}' on this server.")


def _visible(caller: Caller, agents: Sequence[ModelCard]) -> Iterator[ModelEntry]:
    shown: set[str] = set()
    cards = [
        *agents,
        *(card for kind in get_args(ModelKind) if kind not in INTERNAL for card in catalogue().of_kind(kind)),
    ]
    for card in cards:
        for name in _names(card, caller):
            if name not in shown:
                shown.add(name)
                yield ModelEntry(
                    id=name,
                    created=SINCE,
                    owned_by="voiceapp",
                    kind=card.kind,
                    serves=card.name,
                    runs_here=card.runs_here,
                    privacy=leaves(card),
                    capabilities=_capabilities(card, name),
                )


def _names(card: ModelCard, caller: Caller) -> tuple[str, ...]:
    return card.names if not caller.allowed_models or caller.allowed_models & set(card.names) else ()


def _capabilities(card: ModelCard, name: str) -> ModelCapabilities:
    """Return what a card says that a model can do under one of its names."""
    if card.kind == "chat":
        return ModelCapabilities(
            images=card.chat.images,
            tools=card.chat.tools,
            response_format=card.chat.response_format,
            instructions=card.chat.instructions,
        )
    if card.kind == "embedding":
        return ModelCapabilities(
            dimensions=None if card.embedding.dimensions is None else sorted(card.embedding.dimensions),
            default_dimension=card.embedding.default_dimension,
            sparse=card.embedding.has_sparse,
            instructions=card.embedding.has_instruct,
        )
    if card.kind == "asr":
        return ModelCapabilities(languages=list(card.languages) or None, timestamp_granularities=["segment"])
    if card.kind == "realtime":
        return ModelCapabilities(
            transports=list(card.transports),
            responds=name not in card.listens_only,
            input_sample_rate=card.input_rate_of(name),
        )
    return ModelCapabilities()
