"""Facts about the conversation that is going on."""

from __future__ import annotations

from django.conf import settings

from voiceapp.engines.assistant.skills.phrases import Phrases
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply

_HOW_LONG = Phrases(
    "how long have we been (talking|speaking|chatting|connected) [so far|already|now]",
    "how long (is|has|was) (this|the|our) (conversation|call|session|chat) [been] [going [on]|lasted|running]"
    " [so far|now]",
    "how long have i been (talking|talking to you|here|connected)",
    "when did (we|this conversation|this session|this call|our conversation) (start|begin) [talking]",
)
_MODEL = Phrases(
    "(which|what) [ai|language|chat|voice] model are you [using|running|running on]",
    "(which|what) [ai|language|chat|voice] model is (this|that|it|used|being used|running|answering) [here]",
    "(which|what) [ai|language|chat|voice] model (do you use|are we using|am i (talking|speaking) (to|with))",
    "what is your [ai|language] model",
)
_VOICE = Phrases(
    "(which|what) voice (are you using|is this|is that|do you use|do you have|am i hearing)",
    "what is [the name of] your voice",
)
_TURNS = Phrases(
    "how many (turns|questions|things|times) have (we|i) (had|asked|taken|talked|spoken) [you] [so far|already]",
    "how many (turns|questions|things|times) did (we|i) (have|ask|take|talk) [you] [so far|already]",
    "how many turns (were|are) there [so far|already]",
)
_LAST_QUESTION = Phrases(
    "what did i [just] (say|ask) [you] [before|just now|last]",
    "what (was|is) my (last|previous) (question|sentence)",
    "what have i [just] (said|asked) [you]",
    "repeat what i [just] said",
    "repeat my [last] question",
)
_FIRST_QUESTION = Phrases(
    "what was my first question", "what was the first thing i (said|asked) [you]", "what did i (say|ask) [you] first"
)
_RATE = Phrases(
    "how fast (are you|do you) (speaking|talking|speak|talk)", "what is your (speaking|speech) (rate|speed)"
)


_RECORDED = Phrases(
    "(is|are|will) [what i say|my voice|my words|this|the|our|conversation|call|chat|everything i say]* "
    "[be|being] (recorded|stored|saved|kept|listened to)",
    "(am i|are we|is this|is it) [being|getting] (recorded|taped)",
    "(do|are|will) you [record|recording|store|storing|save|saving|keep|keeping|listening to]* "
    "(record|recording|store|storing|save|saving|keep|keeping) [me|us|this|my voice|my words|what i say|everything|"
    "everything i say|this conversation|our conversation|this call|my data]",
    "what (happens to|do you do with) (my voice|my words|what i say|my data|this conversation|our conversation)",
    "how long (do you (keep|store|save)|is) (my words|what i say|my data|this conversation|our conversation|it) "
    "[kept|stored|saved]",
    "who can (read|hear|see) (this|what i say|my words|our conversation|this conversation)",
)


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
