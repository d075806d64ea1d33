"""Other languages, of which the assistant knows this much: it says in them that it knows English only."""

from __future__ import annotations

import re

from voiceapp.engines.assistant.skills.phrases import load, read
from voiceapp.engines.assistant.skills.scene import SkillReply, fixed

_LANGUAGES = read("languages")["languages"]
_WORDS = {
    code: (frozenset(f"{language['words']} {language['own']}".split()), frozenset(language["own"].split()))
    for code, language in _LANGUAGES.items()
    if "own" in language
}
"""Frequent words of a language, and those of them that English does not have."""
_ENGLISH = frozenset(read("languages")["english"].split())
LEAST_SHARE = 0.45
SURELY_WORDS = 3
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]{2}")),
    ("ar", re.compile(r"[\u0600-\u06ff]{2}")),
    ("es", re.compile("[¿¡]")),
)
_REPLIES = load("languages")[1]


def foreign(text: str) -> SkillReply | None:
    """The reply to a sentence in another language, as a person typed or said it; None for English."""
    for language, script in _SCRIPTS:
        if script.search(text):
            return SkillReply(_LANGUAGES[language]["reply"])
    words = re.findall(r"[^\W\d_]+", text.lower())
    of_english = sum(word in _ENGLISH for word in words)
    counts = {language: sum(word in known for word in words) for language, (known, _) in _WORDS.items()}
    for language in sorted(counts, key=lambda language: -counts[language]):
        count = counts[language]
        is_own = not _WORDS[language][1].isdisjoint(words) or count >= SURELY_WORDS
        if is_own and count > of_english and count >= max(LEAST_SHARE * len(words), min(2, len(words))):
            return SkillReply(_LANGUAGES[language]["reply"])
    return None


def reply(said: str, scene: object) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks for no other language."""
    return fixed(_REPLIES, said)
