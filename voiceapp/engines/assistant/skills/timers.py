"""Timers and reminders: set, asked for and taken back. That they speak up is the business of the session."""

from __future__ import annotations

import re
from datetime import timedelta

from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.session import duration
from voiceapp.engines.assistant.skills.units import seconds_of
from voiceapp.protocol.reminders import MAX_REMINDER_S, MAX_REMINDERS, Reminder, ReminderChange

_TEMPLATES, _ = load("timers")
_TIMER = _TEMPLATES["timer"]
_REMIND = _TEMPLATES["remind"]
_WITHOUT_TIME = _TEMPLATES["without_time"]
_LEFT = _TEMPLATES["left"]
_CANCEL = _TEMPLATES["cancel"]
_TASK = _TEMPLATES["task"]
_AGAIN = _TEMPLATES["again"]
_TASK_WORDS = re.compile(
    r"\b(?:tasks?|jobs?|transcriptions?|transcripts?|batch(?:es)?|images?|pictures?|videos?|films?|recordings?)$"
)
NONE_SET = "No timer is set."


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is about no timer."""
    for phrases in (_REMIND, _TIMER, _AGAIN):
        slots = phrases.match(said)
        if slots is None or (phrases is _AGAIN and "timer" not in scene.last_reply):
            continue
        what = slots.get("what", "") if phrases is _REMIND else None
        if (found := _set(slots["time"], what, scene)) is not None:
            return found
    if (slots := _TASK.match(said)) is not None and _TASK_WORDS.search(slots["kind"]):
        if not scene.facts.knows_tasks:
            return SkillReply("I do not know your tasks here.")
        return SkillReply("I will tell you when it is done.", reminders=ReminderChange(awaits_task=True))
    running = scene.facts.reminders
    if _CANCEL.fits(said):
        if not running:
            return SkillReply(NONE_SET)
        text = "I canceled the timer." if len(running) == 1 else f"I canceled all {len(running)} timers."
        return SkillReply(text, reminders=ReminderChange(cancels_all=True))
    if _WITHOUT_TIME.fits(said):
        return SkillReply("For how long? Say for example: in five minutes. Two hours are the most.")
    if _LEFT.fits(said) and (running or "timer" in said or "alarm" in said or "reminder" in said):
        if not running:
            return SkillReply(NONE_SET)
        left = " and ".join(f"{_left(reminder, scene)} for {reminder.name}" for reminder in running[:3])
        return SkillReply(f"You have {left}.")
    return None


def _set(time: str, what: str | None, scene: Scene) -> SkillReply | None:
    seconds = seconds_of(re.sub(r"^(?:about|around|exactly) ", "", time))
    if seconds is None:
        return None
    if not 1 <= seconds <= MAX_REMINDER_S:
        return SkillReply("I can set timers from one second to two hours.")
    if len(scene.facts.reminders) >= MAX_REMINDERS:
        return SkillReply(f"I can keep {MAX_REMINDERS} timers at most.")
    if scene.facts.started_at is None:
        return SkillReply("I can set timers in a conversation only.")
    length = duration(int(seconds))
    if what is None:
        reminder = Reminder(
            f"the {_as_adjective(length)} timer", float(seconds), f"Your {_as_adjective(length)} timer is up."
        )
        return SkillReply(f"Your timer is set for {length}.", reminders=ReminderChange(sets=reminder))
    yours = _to_the_caller(what)
    text = f"Here is your reminder: {yours}." if yours else "Here is your reminder."
    reminder = Reminder(f"the reminder {yours}".strip(), float(seconds), text)
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
