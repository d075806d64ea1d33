"""Facts about the conversation that is going on."""

from __future__ import annotations

import re

from voiceapp.engines.embedded.skills.scene import Scene, SkillAnswer

_HOW_LONG = re.compile(
    r"how long (?:have we been (?:talking|speaking|chatting|connected)|(?:is|has|was) (?:this|the|our) (?:conversation|call|session|chat)(?: been)?(?: going(?: on)?| so far| lasted| until now)*"
    r"|have i been (?:talking(?: to you)?|here|connected))(?: so far| already| now)?|when did (?:we|this conversation|this session|this call|our conversation) (?:start|begin)(?: talking)?"
)
_MODEL = re.compile(
    r"(?:which|what) (?:ai |language |chat |voice )?model (?:are you(?: using| running(?: on)?)?|is (?:this|that|it|used|being used|running|answering)(?: here)?|do you use|am i (?:talking|speaking) (?:to|with)|are we using)"
    r"|what is your (?:ai |language )?model"
)
_VOICE = re.compile(
    r"(?:which|what) voice (?:are you using|is (?:this|that|it)|do you (?:use|have|speak with)|am i hearing)|what is (?:the name of )?your voice"
)
_TURNS = re.compile(
    r"how many (?:turns|questions|things|times) (?:have (?:we|i) (?:had|asked|taken|talked|spoken)(?: you)?|did (?:we|i) (?:have|ask|take|talk)(?: you)?|were there|are there)(?: so far| already| until now)?"
)
_LAST_QUESTION = re.compile(
    r"what did i (?:just )?(?:say|ask)(?: you)?(?: (?:before|just now|last|again))?|what (?:was|is) my (?:last|previous) (?:question|sentence)|what have i (?:just )?(?:said|asked)(?: you)?|repeat (?:what i (?:just )?said|my (?:last )?question)"
)
_FIRST_QUESTION = re.compile(
    r"what was (?:my first question|the first thing i (?:said|asked)(?: you)?)|what did i (?:say|ask)(?: you)? first"
)
_RATE = re.compile(
    r"how fast (?:are you (?:speaking|talking)|do you (?:speak|talk))|what is your (?:speaking |speech )?(?:rate|speed)"
)


def answer(said: str, scene: Scene) -> SkillAnswer | None:
    """`said` is a request in plain form; None when it asks for nothing that the session knows of itself."""
    context = scene.context
    if _HOW_LONG.fullmatch(said) and (started := context.get("started_at")):
        return SkillAnswer(f"We have been talking for {duration(int(scene.now.timestamp() - float(started)))}.")
    if _MODEL.fullmatch(said):
        name = context.get("model")
        called = f' This session\'s model is called "{name}".' if name else ""
        return SkillAnswer(f"No language model is at work: I answer with built-in skills and from documents.{called}")
    if _VOICE.fullmatch(said) and (voice := context.get("voice")):
        return SkillAnswer(f'My voice is called "{voice}".')
    if _TURNS.fullmatch(said):
        turns = int(context.get("turns") or len(scene.earlier) + 1)
        return SkillAnswer("This is your first turn." if turns <= 1 else f"This is turn number {turns}.")
    if _LAST_QUESTION.fullmatch(said):
        return SkillAnswer(f"You said: {scene.earlier[-1]}" if scene.earlier else "This is the first thing you said.")
    if _FIRST_QUESTION.fullmatch(said):
        return SkillAnswer(f"You said: {scene.earlier[0]}" if scene.earlier else "This is the first thing you said.")
    if _RATE.fullmatch(said):
        rate = float(context.get("speech_rate") or 1.0)
        return SkillAnswer(
            "At my normal speed." if rate == 1.0 else f"At {round(rate * 100)} percent of my normal speed."
        )
    return None


def duration(seconds: int) -> str:
    """Words for a length of time, with one or two units."""
    if seconds < 0:
        seconds = 0
    parts = []
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " and ".join(parts[:2]) or "less than a second"
