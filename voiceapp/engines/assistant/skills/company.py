"""Small talk: what people say to an assistant to see who it is, to be kind or unkind, or out of boredom."""

from __future__ import annotations

from collections.abc import Sequence

from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply

_TEMPLATES, _REPLIES = load("company")
_JOKE = _TEMPLATES["joke"]
_FACT = _TEMPLATES["fact"]
_ANOTHER = _TEMPLATES["another"]
_JOKES = (
    "Why did the microphone break up with the speaker? It needed some feedback.",
    "Why was the computer cold? It left its windows open.",
    "There are ten kinds of people: those who understand binary, and those who do not.",
    "What do you call a fish without eyes? A fsh.",
    "Why did the scarecrow win a prize? He was outstanding in his field.",
    "I told my plants a joke. They did not laugh, but they are growing on me.",
    "What is brown and sticky? A stick.",
    "Why do bees have sticky hair? They use honeycombs.",
)
_FACTS = (
    "Honey never spoils: jars from Egyptian tombs could still be eaten.",
    "An octopus has three hearts.",
    "Bananas are berries, and strawberries are not.",
    "A day on Venus is longer than its year.",
    "Sharks are older than trees.",
    "Wombats make droppings in the shape of cubes.",
)


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is no small talk."""
    for wanted, told in ((_JOKE, _JOKES), (_FACT, _FACTS)):
        if wanted.fits(said) or (_ANOTHER.fits(said) and scene.last_reply in told):
            return SkillReply(_next(told, scene.replies))
    return next((SkillReply(text) for phrases, text in _REPLIES if phrases.fits(said)), None)


def _next(told: Sequence[str], replies: Sequence[str]) -> str:
    """The first that was not told yet; once all were, the one after the last."""
    fresh = next((text for text in told if text not in replies), None)
    if fresh is not None:
        return fresh
    last = next(text for text in reversed(replies) if text in told)
    return told[(told.index(last) + 1) % len(told)]
