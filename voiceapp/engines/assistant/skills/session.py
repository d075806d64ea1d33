"""Facts about the conversation that is going on."""

from __future__ import annotations

from django.conf import settings

from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply

_TEMPLATES, _ = load("session")
_HOW_LONG = _TEMPLATES["how_long"]
_MODEL = _TEMPLATES["model"]
_VOICE = _TEMPLATES["voice"]
_TURNS = _TEMPLATES["turns"]
_LAST_QUESTION = _TEMPLATES["last_question"]
_FIRST_QUESTION = _TEMPLATES["first_question"]
_RATE = _TEMPLATES["rate"]
_RECORDED = _TEMPLATES["recorded"]


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks for nothing that the session knows of itself."""
    facts = scene.facts
    if _HOW_LONG.fits(said) and facts.started_at:
        return SkillReply(f"We have been talking for {duration(int(scene.now.timestamp() - facts.started_at))}.")
    if _MODEL.fits(said):
        called = f' The model of this session is called "{facts.model}".' if facts.model else ""
        return SkillReply(f"I am the built-in assistant, with a small language model at most.{called}")
    if _VOICE.fits(said) and facts.voice:
        return SkillReply(f'My voice is called "{facts.voice}".')
    if _TURNS.fits(said):
        turns = facts.turns or scene.turns
        return SkillReply("This is your first turn." if turns <= 1 else f"This is turn number {turns}.")
    if _LAST_QUESTION.fits(said):
        return SkillReply(f"You said: {scene.earlier[-1]}" if scene.earlier else "This is the first thing you said.")
    if _FIRST_QUESTION.fits(said):
        return SkillReply(f"You said: {scene.first}" if scene.first else "This is the first thing you said.")
    if _RECORDED.fits(said):
        return SkillReply(_recorded(settings.TRANSCRIPT_DAYS))
    if _RATE.fits(said):
        percent = round(facts.speech_rate * 100)
        return SkillReply("At my normal speed." if percent == 100 else f"At {percent} percent of my normal speed.")
    return None


def _recorded(days: int) -> str:
    if not days:
        return "Your voice is not recorded on this server, and your words are not kept."
    kept = "one day" if days == 1 else f"{days} days"
    return (
        f"Your voice is not recorded on this server. Your words are kept as text for {kept}, and its operators can "
        "read them."
    )


def duration(seconds: int) -> str:
    """Words for a length of time, in its two largest units."""
    parts = []
    seconds = max(0, seconds)
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " and ".join(parts[:2]) or "less than a second"
