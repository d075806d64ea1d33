"""What a skill knows when it answers, and what an answer of a skill is."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Scene:
    """The conversation around one sentence."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    """The time where the caller is, with its zone."""
    last_answer: str = ""
    """What the assistant said last, as far as it was heard."""
    earlier: tuple[str, ...] = ()
    """What the caller said before this sentence, oldest first."""
    context: dict[str, Any] = field(default_factory=dict)
    """Facts of the session: see `ChatRequest.context`."""
    dice: random.Random = field(default_factory=random.SystemRandom)
    """Where chance comes from; seeded when the caller asks for answers that repeat."""


@dataclass(frozen=True, slots=True)
class SkillAnswer:
    text: str
    speech_rate: float | None = None
    """A new speaking rate; 1.0 is normal."""
