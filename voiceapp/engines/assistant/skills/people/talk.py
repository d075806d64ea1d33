"""Replies about the talk itself: greetings, say that again, slower, stop, who are you, what can you do."""

from __future__ import annotations

from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply, fixed

MIN_RATE, MAX_RATE = 0.6, 1.8
RATE_STEP = 1.2

_TEMPLATES, _REPLIES = load("people/talk")


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is about something else than this conversation's own course."""
    if (after_me := _TEMPLATES["repeat_after_me"].match(said)) is not None:
        return SkillReply(f"{after_me['text'].capitalize()}.")
    if _TEMPLATES["repeat"].fits(said):
        return SkillReply(scene.last_reply or "I have not said anything yet.")
    if (changed := _pace(said, scene)) is not None:
        return changed
    return fixed(_REPLIES, said)


def _pace(said: str, scene: Scene) -> SkillReply | None:
    rate = scene.facts.speech_rate
    if _TEMPLATES["normal"].fits(said):
        return SkillReply("Back to my normal speed.", speech_rate=1.0)
    if _TEMPLATES["slower"].fits(said):
        if rate <= MIN_RATE:
            return SkillReply("This is as slow as I can speak.", speech_rate=MIN_RATE)
        return SkillReply("Okay, I will speak slower.", speech_rate=max(MIN_RATE, round(rate / RATE_STEP, 2)))
    if _TEMPLATES["faster"].fits(said):
        if rate >= MAX_RATE:
            return SkillReply("This is as fast as I can speak.", speech_rate=MAX_RATE)
        return SkillReply("Okay, I will speak faster.", speech_rate=min(MAX_RATE, round(rate * RATE_STEP, 2)))
    return None
