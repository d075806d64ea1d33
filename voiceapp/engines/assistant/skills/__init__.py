"""Skills that reply without documents: each replies to the whole of a sentence, or not at all.

A sentence is tried on every skill in turn. The patterns match from the first word to the last, because a wrong reply
to another question is worse than none. When something is told before a question, the question is tried by itself.
"""

from __future__ import annotations

from voiceapp.engines.assistant.skills import follow_ups, languages
from voiceapp.engines.assistant.skills.last_sentence import last_requests
from voiceapp.engines.assistant.skills.order import SKILLS
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.unknown import reply_to_unknown
from voiceapp.engines.assistant.skills.words import plain, request

__all__ = ["SKILLS", "Scene", "SkillReply", "plain", "reply", "reply_to_unknown"]

MAX_CHARS = 400
"""Longer than any request to a skill."""


def reply(text: str, scene: Scene) -> SkillReply | None:
    """The reply of the first skill that understands all of `text`, as a person said or typed it, or else its end."""
    if len(text) > MAX_CHARS:
        return None
    if (foreign := languages.foreign(text)) is not None:
        return foreign
    asked = (text, *last_requests(text))
    whole = next((found for part in asked if (found := _whole(part, scene)) is not None), None)
    return whole or (follow_ups.reply(text, scene) if scene.earlier else None)


def _whole(text: str, scene: Scene) -> SkillReply | None:
    for form in filter(None, dict.fromkeys((plain(text), request(text)))):
        for skill in SKILLS:
            found = skill(form, scene)
            if found is not None:
                return found
    return None
