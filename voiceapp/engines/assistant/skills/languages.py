"""Other languages, of which the assistant knows this much: it says in them that it knows English only."""

from __future__ import annotations

import re

from voiceapp.engines.assistant.skills.phrases import load, read
from voiceapp.engines.assistant.skills.scene import SkillReply

ENGLISH_ONLY = "I understand English only, I am sorry."
_LANGUAGES = read("languages")["languages"]
_OWN = {code: frozenset(language["own"].split()) for code, language in _LANGUAGES.items() if "own" in language}
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]{2}")),
)
_TEMPLATES, _ = load("languages")
_ASKED = _TEMPLATES["asked"]


def foreign(text: str) -> SkillReply | None:
    """The reply to a sentence in another language, as a person typed or said it; None for English."""
    for language, script in _SCRIPTS:
        if script.search(text):
            return SkillReply(_LANGUAGES[language]["reply"])
    words = re.findall(r"[^\W\d_]+", text.lower())
    if not words:
        return None
    for language, own in _OWN.items():
        known = own.union(_LANGUAGES[language]["words"].split())
        if not own.isdisjoint(words) and sum(word in known for word in words) >= 0.6 * len(words):
            return SkillReply(_LANGUAGES[language]["reply"])
    return None


def reply(said: str, scene: object) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks for no other language."""
    return SkillReply(ENGLISH_ONLY) if _ASKED.fits(said) else None
