"""Data that leaves this server when a model is used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from django.conf import settings

from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.catalogue.lookup import catalogue

Leaves = Literal["nothing", "words", "sound"]

SOUND: tuple[ModelKind, ...] = ("vad", "turn", "asr")
"""Models that hear the caller."""
WORDS: tuple[ModelKind, ...] = ("chat", "tts")
"""Models that read what was said, or the reply."""


def is_elsewhere(kinds: Iterable[ModelKind]) -> bool:
    """Return whether another server runs any of the models of these kinds in conversations, stand-ins included."""
    return any(_may_leave(card) for kind in kinds for card in catalogue().of_kind(kind)[:1])


def leaves(card: ModelCard) -> Leaves:
    """Return what other servers get when this model is used: nothing, words as text, or sound.

    Pictures go where the words go. A realtime model uses the models that conversations use.
    """
    if card.kind == "realtime":
        if card.is_held_elsewhere or is_elsewhere(SOUND):
            return "sound"
        return "words" if is_elsewhere(WORDS) or settings.INSPECTION_BASE_URL else "nothing"
    if _may_leave(card):
        return "sound" if card.kind in SOUND else "words"
    return "words" if card.kind == "chat" and settings.INSPECTION_BASE_URL else "nothing"


def _may_leave(card: ModelCard) -> bool:
    return not all(each.runs_here for each in (card, *(catalogue().get(name, card.kind) for name in card.fallbacks)))
