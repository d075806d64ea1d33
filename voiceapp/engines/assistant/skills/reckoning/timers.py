"""Timers and reminders: set, asked for and taken back. That they speak up is the business of the session."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.assistant.skills.reckoning.clock import time_of_day
from voiceapp.engines.assistant.skills.reckoning.units import seconds_of
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.session import duration
from voiceapp.protocol.reminders import MAX_REMINDER_S, MAX_REMINDERS, Reminder, ReminderChange

_TEMPLATES, _ = load("reckoning/timers")
NONE_SET = "No timer is set."
REMINDER = "the reminder"
"""Beginning of a reminder's name."""


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is about no timer."""
    goes_on = "timer" in scene.last_reply or "remind" in scene.last_reply
    for kind in ("remind", "named_timer", "timer", "again", "instead"):
        slots = _TEMPLATES[kind].match(said)
        if slots is None or (kind in ("again", "instead") and not goes_on):
            continue
        what = slots.get("what", "") if kind == "remind" else None
        seconds = seconds_of(re.sub(r"^(?:about|around|exactly) ", "", slots["time"]))
        if seconds is not None:
            name = slots.get("name", "")
            if kind == "instead":
                name, what = _named_before(scene)
            found = _set(seconds, what, scene, name=name)
            return instead(found, scene) if kind == "instead" else found
    running = scene.facts.reminders
    if len(running) == 1 and goes_on and (slots := _TEMPLATES["more"].match(said)) is not None:
        more = seconds_of(
            slots["time"] if "time" in slots else f"{slots['count']} {said.split(' more ')[1].split()[0]}"
        )
        if more is not None:
            name, what = _named_before(scene)
            return instead(_set(more + round(running[0].in_s), what, scene, name=name), scene)
    if (slots := _TEMPLATES["at"].match(said)) and (then := time_of_day(slots["at"], scene.now)):
        what = None if "what" not in slots and "remind" not in said else slots.get("what", "")
        seconds = Fraction(round((then - scene.now).total_seconds()))
        if seconds > MAX_REMINDER_S:
            return SkillReply(f"That is in {duration(int(seconds))}, and I keep timers for two hours at most.")
        return _set(seconds, what, scene)
    if _TEMPLATES["cancel"].fits(said) or (_TEMPLATES["cancel_it"].fits(said) and running and goes_on):
        if not running:
            return SkillReply(NONE_SET)
        text = "I canceled the timer." if len(running) == 1 else f"I canceled all {len(running)} timers."
        return SkillReply(text, reminders=ReminderChange(cancels_all=True))
    if _TEMPLATES["without_time"].fits(said):
        return SkillReply("For how long? Say for example: in five minutes. Two hours are the most.")
    if _TEMPLATES["left"].fits(said) and (running or goes_on or re.search(r"timer|alarm|reminder", said)):
        if not running:
            return SkillReply(NONE_SET)
        left = " and ".join(f"{_left(reminder, scene)} for {reminder.name}" for reminder in running[:3])
        return SkillReply(f"You have {left}.")
    return None


def _named_before(scene: Scene) -> tuple[str, str | None]:
    """The name of the only timer where it has one, or what it reminds of."""
    before = scene.facts.reminders[0].name if len(scene.facts.reminders) == 1 else ""
    if before.startswith(REMINDER):
        return "", before.removeprefix(REMINDER).strip()
    name = before.removeprefix("the ").removesuffix("timer").strip()
    return ("" if name[:1].isdigit() else name), None


def instead(found: SkillReply, scene: Scene) -> SkillReply:
    """A timer that takes the place of the only one."""
    change = found.reminders
    if change is None or change.sets is None or len(scene.facts.reminders) != 1:
        return found
    return replace(found, reminders=replace(change, cancels_all=True))


def _set(seconds: Fraction, what: str | None, scene: Scene, *, name: str = "") -> SkillReply:
    if not 1 <= seconds <= MAX_REMINDER_S:
        return SkillReply("I can set timers from one second to two hours.")
    if len(scene.facts.reminders) >= MAX_REMINDERS:
        return SkillReply(f"I can keep {MAX_REMINDERS} timers at most.")
    if scene.facts.started_at is None:
        return SkillReply("I can set timers in a conversation only.")
    length = duration(int(seconds))
    if what is None:
        kind = name or _as_adjective(length)
        reminder = Reminder(f"the {kind} timer", float(seconds), f"Your {kind} timer is up.")
        called = f"{name} timer" if name else "timer"
        return SkillReply(f"Your {called} is set for {length}.", reminders=ReminderChange(sets=reminder))
    yours = _to_the_caller(what)
    text = f"Here is your reminder: {yours}." if yours else "Here is your reminder."
    reminder = Reminder(f"{REMINDER} {yours}".strip(), float(seconds), text)
    return SkillReply(f"I will remind you in {length}.", reminders=ReminderChange(sets=reminder))


def _as_adjective(length: str) -> str:
    """ "5 minutes and 30 seconds" → "5 minute 30 second"."""
    return re.sub(r"(\d+ [a-z]+?)s?\b", r"\1", length.replace(" and ", " "))


def _to_the_caller(what: str) -> str:
    """ "call my mother" → "call your mother"."""
    swapped = {"my": "your", "me": "you", "i": "you", "myself": "yourself", "mine": "yours", "am": "are"}
    return " ".join(swapped.get(word, word) for word in what.split())


def _left(reminder: Reminder, scene: Scene) -> str:
    return duration(round(timedelta(seconds=reminder.in_s).total_seconds()))
