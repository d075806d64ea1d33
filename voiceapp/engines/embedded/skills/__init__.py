"""What the embedded assistant can do without documents: each skill answers the whole of a sentence, or nothing.

A sentence is tried on every skill in turn. The patterns match from the first word to the last, because a wrong answer
to another question is worse than none.
"""

from __future__ import annotations

from voiceapp.engines.embedded.skills import arithmetic, clock, play, session, talk, units
from voiceapp.engines.embedded.skills.scene import Scene, SkillAnswer
from voiceapp.engines.embedded.skills.words import plain, request

__all__ = ["Scene", "SkillAnswer", "answer"]

MAX_CHARS = 400
"""Nobody words a request to a skill at greater length."""


def answer(text: str, scene: Scene) -> SkillAnswer | None:
    """The answer of the first skill that understands all of `text`, as a person said or typed it."""
    if len(text) > MAX_CHARS:
        return None
    said = plain(text)
    forms = dict.fromkeys((said, request(text)))
    for form in forms:
        for skill in (talk, session, clock, units, arithmetic, play):
            if form and (found := skill.answer(form, scene)) is not None:
                return found
    return None
