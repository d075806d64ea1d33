"""Timers and reminders: set, asked for and taken back. That they speak up is the business of the session."""

from __future__ import annotations

import re
from datetime import timedelta

from voiceapp.engines.assistant.skills.phrases import Phrases
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.session import duration
from voiceapp.engines.assistant.skills.units import seconds_of
from voiceapp.protocol.reminders import MAX_REMINDER_S, MAX_REMINDERS, Reminder, ReminderChange

_TIMER = Phrases(
    "(set|start|create|make|begin|give me|i need|put on|run|add) [me|up]* [a|an|the|another|one more|my]* [new]* "
    "timer [for|of|to]* {time}",
    "(set|start|create|make|give me|i need|put on|add) [me|up]* [a|an|the|another]* {time} timer",
    "timer [for]* {time}",
    "{time} timer",
    "(set|start) (a|an) (alarm|countdown) (for|of|in) {time}",
    "(wake me [up]|tell me|let me know|count down|countdown) (in|after|when) {time} [is over|are over|have passed]*",
    "wake me [up]* in {time}",
)
_REMIND = Phrases(
    "remind me (to|about|that|of) {what} in {time}",
    "remind me in {time} (to|about|that|of) {what}",
    "in {time} remind me (to|about|that|of) {what}",
    "(set|create|make|add) (a|another) reminder (to|for|about) {what} in {time}",
    "(set|create|make|add) (a|another) reminder (in|for) {time} (to|about|for) {what}",
    "(set|create|make|add) (a|another) reminder (in|for) {time}",
    "remind me [again]* in {time}",
)
_WITHOUT_TIME = Phrases(
    "(set|start|create|make|give me|i need) [me|up]* (a|an|the|another) (timer|alarm|reminder)",
    "remind me (to|about|that|of) {what}",
    "remind me",
    "remind me (at|on|by|tomorrow|tonight|this|next|every) {when}",
    "(set|start|create|make|give me|i need) [me|up]* (a|an|the|another|my) (timer|alarm|reminder) (for|at|on) {when}",
    "wake me [up] (at|by|tomorrow|tonight|on|in the|every) {when}",
)
_LEFT = Phrases(
    "how (much time|long) [is|do i have|have i]* [left|remaining|remains|still]* [on|of|in|until|till|for]* [the|my|"
    "it|that]*"
    " [timer|alarm|reminder|rings|goes off|left]*",
    "(how is|check|status of) (the|my) timer [doing]*",
    "what timers (do i have|are there|are running)",
    "(when does|when will) (the|my) (timer|alarm) (ring|end|go off)",
    "(do i have|are there) [any|a]* (timer|timers|reminders|alarms) [running|set]*",
    "what (are|is) my (timer|timers|reminder|reminders)",
)
_CANCEL = Phrases(
    "(cancel|stop|delete|remove|end|turn off|clear|kill) [the|my|all|all my|that|all the|all of my|this]*"
    " (timer|timers|alarm|alarms|reminder|reminders|countdown)",
    "(cancel|stop|delete|forget) (the|my) {time} (timer|reminder)",
    "i do not need the (timer|reminder) any more",
)
_TASK = Phrases(
    "[please|can you|could you]* (tell me|let me know|notify me|say something|remind me|inform me|speak up) "
    "(when|once|as soon as|after|if) (my|the|that|this|a) {kind} (is|are|has) [been]* "
    "(done|finished|ready|over|complete|completed|through)",
    "[please|can you|could you]* (tell me|let me know|notify me|remind me|inform me) (when|once|as soon as|after) "
    "(my|the|that|this|a) {kind} (finishes|ends|completes)",
)
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


_AGAIN = Phrases(
    "[and]* (another|one more|another one) [timer]* (for|of) {time}", "(make|change) (it|that) [to|for]* {time}"
)


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
