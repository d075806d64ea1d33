"""Small talk: what people say to an assistant to see who it is, to be kind or unkind, or out of boredom; and requests
that are out of its reach."""

from __future__ import annotations

from collections.abc import Sequence

from voiceapp.engines.assistant.skills.phrases import load, read
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply, fixed

_TEMPLATES, _REPLIES = load("people/company")
_REFUSALS = load("people/beyond")[1]
"""Replies to requests that are refused at once, instead of pretending: devices, calls, news, the weather."""
_SERIES = [(_TEMPLATES[name], texts) for name, texts in read("people/company")["series"].items()]


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is neither small talk nor out of reach."""
    for wanted, told in _SERIES:
        if wanted.fits(said) or (_TEMPLATES["another"].fits(said) and scene.last_reply in told):
            return SkillReply(_next(told, scene.replies))
    return fixed((*_REPLIES, *_REFUSALS), said)


def _next(told: Sequence[str], replies: Sequence[str]) -> str:
    """The first that was not told yet; once all were, the one after the last."""
    fresh = next((text for text in told if text not in replies), None)
    if fresh is not None:
        return fresh
    last = next(text for text in reversed(replies) if text in told)
    return told[(told.index(last) + 1) % len(told)]
