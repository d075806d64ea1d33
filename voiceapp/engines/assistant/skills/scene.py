"""Facts that a skill knows when it replies, and its reply."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from voiceapp.engines.assistant.skills.phrases import Phrases
from voiceapp.engines.interfaces import SessionFacts
from voiceapp.protocol.items import Author
from voiceapp.protocol.reminders import ReminderChange
from voiceapp.protocol.work import Source


@dataclass(frozen=True, slots=True)
class Scene:
    """The conversation around one sentence."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    """The time where the caller is, with its zone."""
    last_reply: str = ""
    """Last reply of the assistant, as far as it was heard."""
    replies: tuple[str, ...] = ()
    """The assistant's latest replies, oldest first."""
    earlier: tuple[str, ...] = ()
    """Sentences of the caller before this one, oldest first."""
    exchanges: tuple[tuple[str, str], ...] = ()
    """The latest sentences of the caller before this one, each with the reply that it got, oldest first."""
    first: str = ""
    """First sentence of the caller; empty when it is this one."""
    turns: int = 1
    """The sentences of the caller, this one included."""
    facts: SessionFacts = field(default_factory=SessionFacts)
    dice: random.Random = field(default_factory=random.SystemRandom)
    """Source of chance; seeded when the caller asks for replies that repeat."""


@dataclass(frozen=True, slots=True)
class SkillReply:
    text: str
    speech_rate: float | None = None
    """A new speaking rate; 1.0 is normal."""
    source: Source | None = None
    """Document or table that the reply is from."""
    is_quotation: bool = False
    """The words are those of a document."""
    reminders: ReminderChange | None = None
    """A timer or reminder that is set, or taken back."""

    @property
    def author(self) -> Author:
        """The author of it."""
        return Author("document" if self.is_quotation else "skill")


def fixed(replies: Iterable[tuple[Phrases, dict[str, Any]]], said: str) -> SkillReply | None:
    """The reply of the first templates that fit `said`, which is in plain form; `title` and `page` name its source."""
    found = next((reply for phrases, reply in replies if phrases.fits(said)), None)
    if found is None:
        return None
    text = found["text"]
    source = Source(found["title"], text, found.get("page", "")) if "title" in found else None
    return SkillReply(text, source=source)
