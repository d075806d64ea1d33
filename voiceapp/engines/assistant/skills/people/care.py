"""Replies with care to callers in distress, and with where to find help. Intent counts: accidents and idioms do not."""

from __future__ import annotations

import re

from voiceapp.engines.assistant.skills.phrases import load, read
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply, fixed

_PATTERNS = read("people/care")["patterns"]


def _pattern(name: str) -> re.Pattern[str]:
    """The alternatives of a name, with the patterns whose names stand in them in capitals."""
    whole = "|".join(_PATTERNS[name])
    return re.compile(re.sub(r"INTENT|TAIL|IDIOMATIC|PERSON", lambda found: _PATTERNS[found[0]], whole))


_MEANT, _HURTING, _DYING, _EMERGENCY = map(_pattern, ("meant", "hurting", "dying", "emergency"))
_ASIDE, _FICTION, _IDIOM, _NOT_MEANT, _TOLD_OF = map(_pattern, ("aside", "fiction", "idiom", "not_meant", "told_of"))
_TEXTS = read("people/care")["texts"]
_, _REPLIES = load("people/care")


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it tells of no distress."""
    told = _ASIDE.sub("", said)
    is_meant = _MEANT.search(told) and not _FICTION.search(told)
    is_harm = _HURTING.search(told) and not _NOT_MEANT.search(told)
    if is_meant or is_harm or (_DYING.search(told) and not _IDIOM.search(told) and not _FICTION.search(told)):
        return SkillReply(_TEXTS["crisis"])
    if _EMERGENCY.search(said) and not _TOLD_OF.search(said):
        return SkillReply(_TEXTS["emergency"])
    return fixed(_REPLIES, said)
