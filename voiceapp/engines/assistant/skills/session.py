"""Facts about the conversation that is going on, and questions that visitors ask first about this product."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from django.conf import settings

from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply, fixed
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.protocol.work import Source

_TEMPLATES, _ = load("session")
_REPLIES = load("product")[1]
MOST_EXCHANGES = 4
"""Exchanges of a summary: listeners remember no more."""
MAX_SAID_CHARS = 80
"""Length of what either side said in it."""


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks for nothing that the session knows of itself."""
    facts = scene.facts
    if _TEMPLATES["how_long"].fits(said) and facts.started_at:
        return SkillReply(f"We have been talking for {duration(int(scene.now.timestamp() - facts.started_at))}.")
    if _TEMPLATES["model"].fits(said):
        called = f' The model of this session is called "{facts.model}".' if facts.model else ""
        return SkillReply(f"I am the built-in assistant, with a small language model at most.{called}")
    if _TEMPLATES["voice"].fits(said) and facts.voice:
        return SkillReply(f'My voice is called "{facts.voice}".')
    if _TEMPLATES["turns"].fits(said):
        turns = facts.turns or scene.turns
        return SkillReply("This is your first turn." if turns <= 1 else f"This is turn number {turns}.")
    if _TEMPLATES["summary"].fits(said):
        return SkillReply(_summary(scene.exchanges))
    if _TEMPLATES["last_question"].fits(said):
        return SkillReply(f"You said: {scene.earlier[-1]}" if scene.earlier else "This is the first thing you said.")
    if _TEMPLATES["first_question"].fits(said):
        return SkillReply(f"You said: {scene.first}" if scene.first else "This is the first thing you said.")
    if _TEMPLATES["recorded"].fits(said):
        kept = _recorded(settings.TRANSCRIPT_DAYS, settings.RECORDING_DAYS)
        return SkillReply(kept, source=Source("Privacy", kept, "privacy"))
    if _TEMPLATES["rate"].fits(said):
        percent = round(facts.speech_rate * 100)
        return SkillReply("At my normal speed." if percent == 100 else f"At {percent} percent of my normal speed.")
    return fixed(_REPLIES, said)


def _summary(exchanges: Sequence[tuple[str, str]]) -> str:
    """The latest exchanges, with the first sentence of each reply."""
    if not exchanges:
        return "This is the first thing you said."
    told = [f"You said: {_short(said)} I said: {_short(reply)}" for said, reply in exchanges[-MOST_EXCHANGES:]]
    return " ".join(("The last things were these." if len(exchanges) > MOST_EXCHANGES else "So far:", *told))


def _short(text: str) -> str:
    """The first sentence of `text`, or its first words."""
    splitter = SentenceSplitter(first_clause_chars=0)
    first = next(iter((*splitter.feed(text), *splitter.flush())), text).strip()
    cut = textwrap.shorten(first, MAX_SAID_CHARS, placeholder=" …")
    return cut if cut[-1:] in ".?!…" else f"{cut}."


def _recorded(days: int, recording_days: int) -> str:
    voice = "Your voice is not recorded on this server"
    if recording_days:
        kept = _days(recording_days)
        voice = f"This conversation is recorded: its sound is kept for {kept}, and operators can listen to it"
    if not days:
        return f"{voice}, and your words are not kept."
    return f"{voice}. Your words are kept as text for {_days(days)}; its operators can read them."


def _days(count: int) -> str:
    return "one day" if count == 1 else f"{count} days"


def duration(seconds: int) -> str:
    """Words for a length of time, in its two largest units."""
    parts = []
    seconds = max(0, seconds)
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " and ".join(parts[:2]) or "less than a second"
