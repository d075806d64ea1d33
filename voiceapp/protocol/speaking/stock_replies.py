"""Sentences for where there is no reply, in the language of the session, in words that every visitor knows."""

from __future__ import annotations

import tomllib
from enum import Enum
from pathlib import Path

DEFAULT_LANGUAGE = "en"


class StockReply(Enum):
    NOT_UNDERSTOOD = "not_understood"
    """The caller spoke, and no word was understood."""
    NO_REPLY = "no_reply"
    """The model that writes replies cannot be asked."""
    BROKEN_OFF = "broken_off"
    """The model stopped in the middle of a reply."""
    ENGLISH_ONLY = "english_only"
    """The model replies in English alone, and the caller speaks another language."""
    FILTERED = "filtered"
    """A filter of the model's server left nothing of the reply."""
    FILLER = "filler"
    """The model has not written anything yet."""
    LONGER = "longer"
    """The model has not written anything for long."""
    PERMISSION = "permission"
    """The caller has to allow the call of a tool on the page."""
    MUTED = "muted"
    """An operator has muted the caller."""
    UNMUTED = "unmuted"
    """The caller is heard again."""
    OPERATOR_LISTENING = "operator_listening"
    """An operator hears both sides from now on."""
    ENDING = "ending"
    """The longest duration of the session is nearly over."""


_SENTENCES: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


def stock_reply(which: StockReply, language: str | None, number: int = 0) -> str:
    """The sentence in `language` (an ISO 639-1 code with or without a region), in English where there is none; of
    several that mean the same, each `number` takes another than the one before it."""
    sentences = _SENTENCES[which.value]
    found = sentences.get((language or DEFAULT_LANGUAGE).split("-")[0].lower(), sentences[DEFAULT_LANGUAGE])
    return found[number % len(found)]
