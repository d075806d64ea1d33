"""The models of this server, in OpenAI's words: every name that may be asked for, aliases too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from voiceapp.accounts.auth import Caller
from voiceapp.compatible.schemas import Model
from voiceapp.engines.catalogue import Kind, ModelCard, catalogue
from voiceapp.errors import ModelNotFound

SINCE = 1_767_225_600
"""When these models were made, in Unix seconds: clients want a number, and none is known of most."""


def visible(caller: Caller) -> list[Model]:
    """What this caller may ask for."""
    return list(_visible(caller))


def one(caller: Caller, name: str) -> Model:
    """Raises ModelNotFound."""
    for model in _visible(caller):
        if model.id == name:
            return model
    raise ModelNotFound(f"There is no model '{name[:80]}' on this server.")


def _visible(caller: Caller) -> Iterator[Model]:
    shown: set[str] = set()
    cards = [card for kind in get_args(Kind) if kind != "turn" for card in catalogue().names(kind)]
    for card in cards:
        for name in _names(card, caller):
            if name not in shown:
                shown.add(name)
                yield Model(id=name, created=SINCE, owned_by="voiceapp", kind=card.kind, serves=card.name)


def _names(card: ModelCard, caller: Caller) -> tuple[str, ...]:
    names = (card.name, *card.aliases)
    return names if not caller.allowed_models or caller.allowed_models & set(names) else ()
