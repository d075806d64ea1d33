"""The models of this server, in OpenAI's words: every name that may be asked for, aliases too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from voiceapp.accounts.auth import Caller
from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.catalogue.lookup import catalogue
from voiceapp.compatible.schemas import ModelEntry
from voiceapp.errors import ModelNotFound

INTERNAL: tuple[ModelKind, ...] = ("vad", "turn")
"""Kinds that no caller asks for by name."""
SINCE = 1_767_225_600
"""When these models were made, in Unix seconds: clients want a number, and none is known of most."""


def visible(caller: Caller) -> list[ModelEntry]:
    """What this caller may ask for."""
    return list(_visible(caller))


def one(caller: Caller, name: str) -> ModelEntry:
    """One model as OpenAI's clients list it.

    Raises:
        ModelNotFound: if no model has this name.
    """
    for model in _visible(caller):
        if model.id == name:
            return model
    raise ModelNotFound(f"There is no model '{name[:80]}' on this server.")


def _visible(caller: Caller) -> Iterator[ModelEntry]:
    shown: set[str] = set()
    cards = [card for kind in get_args(ModelKind) if kind not in INTERNAL for card in catalogue().of_kind(kind)]
    for card in cards:
        for name in _names(card, caller):
            if name not in shown:
                shown.add(name)
                yield ModelEntry(id=name, created=SINCE, owned_by="voiceapp", kind=card.kind, serves=card.name)


def _names(card: ModelCard, caller: Caller) -> tuple[str, ...]:
    return card.names if not caller.allowed_models or caller.allowed_models & set(card.names) else ()
