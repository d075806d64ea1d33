"""What a skill knows when it replies, and what a reply of a skill is."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime

from voiceapp.engines.interfaces import SessionFacts
from voiceapp.protocol.reminders import ReminderChange
from voiceapp.protocol.work import Source


@dataclass(frozen=True, slots=True)
class Scene:
    """The conversation around one sentence."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    """The time where the caller is, with its zone."""
    last_reply: str = ""
    """What the assistant said last, as far as it was heard."""
    replies: tuple[str, ...] = ()
    """The assistant's latest replies, oldest first."""
    earlier: tuple[str, ...] = ()
    """What the caller said last before this sentence, oldest first."""
    first: str = ""
    """What the caller said first; empty when it is this sentence."""
    turns: int = 1
    """The sentences of the caller, this one included."""
    facts: SessionFacts = field(default_factory=SessionFacts)
    dice: random.Random = field(default_factory=random.SystemRandom)
    """Where chance comes from; seeded when the caller asks for replies that repeat."""


@dataclass(frozen=True, slots=True)
class SkillReply:
    text: str
    speech_rate: float | None = None
    """A new speaking rate; 1.0 is normal."""
    source: Source | None = None
    """Where it was found, when it is out of a document."""
    reminders: ReminderChange | None = None
    """A timer or reminder that is set, or taken back."""
