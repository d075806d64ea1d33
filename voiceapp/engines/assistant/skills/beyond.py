"""Requests that this assistant refuses at once, instead of pretending: devices, calls, news, the weather."""

from __future__ import annotations

from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply, fixed

_, _REPLIES = load("beyond")


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is not for something that is out of reach here."""
    return fixed(_REPLIES, said)
