"""Skills in the order in which they are tried on a request."""

from __future__ import annotations

from collections.abc import Callable

from voiceapp.engines.assistant.skills import languages, notes, session
from voiceapp.engines.assistant.skills.facts import countries, dictionary, science
from voiceapp.engines.assistant.skills.people import care, company, play, talk
from voiceapp.engines.assistant.skills.reckoning import arithmetic, clock, timers, units
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply

Skill = Callable[[str, Scene], SkillReply | None]
SKILLS: tuple[Skill, ...] = (
    care.reply,
    timers.reply,
    talk.reply,
    session.reply,
    clock.reply,
    units.reply,
    arithmetic.reply,
    play.reply,
    notes.reply,
    company.reply,
    countries.reply,
    science.reply,
    dictionary.reply,
    languages.reply,
)
FOLLOWED = tuple(module.reply for module in (timers, clock, units, arithmetic, play, countries, science, dictionary))
"""Skills whose requests may be changed by the next sentence."""
