"""What the embedded assistant can do without documents: each skill answers the whole of a sentence, or nothing.

A sentence is tried on every skill in turn. The patterns match from the first word to the last, because a wrong answer
to another question is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable

from voiceapp.engines.embedded.skills import arithmetic, clock, play, session, talk, units
from voiceapp.engines.embedded.skills.scene import Scene, SkillAnswer
from voiceapp.engines.embedded.skills.words import plain, request

__all__ = ["Scene", "SkillAnswer", "answer"]

_SKILLS: tuple[Callable[[str, Scene], SkillAnswer | None], ...] = (
    talk.answer,
    session.answer,
    clock.answer,
    units.answer,
    arithmetic.answer,
    play.answer,
)
MAX_CHARS = 400
"""Nobody words a request to a skill at greater length."""


def answer(text: str, scene: Scene) -> SkillAnswer | None:
    """The answer of the first skill that understands all of `text`, as a person said or typed it."""
    if len(text) > MAX_CHARS:
        return None
    for form in filter(None, dict.fromkeys((plain(text), request(text)))):
        for skill in _SKILLS:
            found = skill(form, scene)
            if found is not None:
                return found
    return None
