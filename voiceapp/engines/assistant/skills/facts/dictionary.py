"""Meanings, synonyms and opposites of English words, and who or what well-known names are, from WordNet."""

from __future__ import annotations

import lzma
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from voiceapp.engines.assistant.skills.phrases import load, read
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.words import listed, request
from voiceapp.protocol.work import Source

_TEMPLATES, _ = load("facts/dictionary")
_SOURCE = Source(**read("facts/dictionary")["source"])
_ASIDE = re.compile(r" ?\([^()0-9]*\)| ?\((?:born in )?[\d\s?.,/–-]*(?:BC)?\)")
_LIFE = re.compile(r"\(.*?\d{2,4} ?-.*\d{2,4}.*\)|\bancient\b|\bB\.?C\b")
_HAS_ARTICLE = re.compile(r"(?:an?|the|one|any|some|\(|[a-z]+s )\b", re.IGNORECASE)
MAX_WORD_CHARS = 60


@dataclass(frozen=True, slots=True)
class DictionaryEntry:
    word: str
    """Word as it is written."""
    meanings: tuple[str, ...]
    """Part of speech in three letters, and the meaning; the most frequent first."""
    synonyms: tuple[str, ...]
    opposites: tuple[str, ...]
    example: str

    @property
    def is_name(self) -> bool:
        return self.word[:1].isupper()


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is not about a word that is known."""
    if (slots := _TEMPLATES["meaning"].match(said)) is not None:
        return _told(_entry(slots["word"]), ", or ")
    if (slots := _TEMPLATES["synonym"].match(said)) is not None:
        return _others(_entry(slots["word"]), "synonyms", "Other words for")
    if (slots := _TEMPLATES["opposite"].match(said)) is not None:
        return _others(_entry(slots["word"]), "opposites", "The opposite of")
    if (slots := _TEMPLATES["example"].match(said)) is not None:
        word = slots.get("word", "it")
        entry = _last_word(scene) if word in ("it", "that", "this") else _entry(word)
        if entry is not None and entry.example:
            return SkillReply(f"For example: {entry.example.rstrip('.')}.", source=_SOURCE)
    return None


def known(said: str) -> SkillReply | None:
    """The reply to "what is a black hole" and "who was Einstein", for when nothing else fits."""
    slots = _TEMPLATES["what_is"].match(said)
    return None if slots is None else _told(_entry(slots["word"]), "")


def knows(word: str) -> bool:
    return _entry(word) is not None


def _told(entry: DictionaryEntry | None, between: str) -> SkillReply | None:
    """Return the meaning of a word, with its second meaning after `between` unless that is empty."""
    if entry is None:
        return None
    nouns = [meaning for meaning in entry.meanings if meaning.startswith("nou")]
    chosen = nouns[0] if nouns and not between else entry.meanings[0]
    part, meaning = chosen[:3], chosen[4:]
    plural = entry.word.endswith("s") and not entry.word.endswith("ss")
    if entry.is_name and part == "nou":
        verb = "was" if _LIFE.search(meaning) else "is"
        article = "" if plural or _HAS_ARTICLE.match(meaning) else "an " if meaning[0] in "aeiouAEIO" else "a "
        text = f"{entry.word} {verb} {article}{_spoken(meaning)}"
    else:
        second = between + _spoken(entry.meanings[1][4:]) if between and len(entry.meanings) > 1 else ""
        to = "to " if part == "ver" else ""
        start = f"{to}{entry.word} means {to}"
        text = f"{start[:1].upper()}{start[1:]}{_spoken(meaning)}{second}"
    return SkillReply(f"{text.rstrip('.')}.", source=_SOURCE)


def _spoken(meaning: str) -> str:
    """A meaning without what stands in brackets, which cannot be heard, unless it is a measure."""
    return " ".join(_ASIDE.sub("", meaning).split()).replace(" ;", ";").strip()


def _others(entry: DictionaryEntry | None, kind: str, start: str) -> SkillReply | None:
    if entry is None:
        return None
    words = entry.synonyms if kind == "synonyms" else entry.opposites[:1]
    verb = "are" if len(words) > 1 else "is"
    text = f"{start} {entry.word} {verb} {listed(words)}." if words else f"I know no {kind} of {entry.word}."
    return SkillReply(text, source=_SOURCE)


def _last_word(scene: Scene) -> DictionaryEntry | None:
    """The word that was asked about last."""
    for text in reversed(scene.earlier):
        for name in ("meaning", "synonym", "opposite", "what_is"):
            if (slots := _TEMPLATES[name].match(request(text))) is not None:
                return _entry(slots["word"])
    return None


@cache
def _words() -> bytes:
    return lzma.decompress((Path(__file__).parent / "data" / "words.tsv.xz").read_bytes())


def _entry(word: str) -> DictionaryEntry | None:
    """The entry of `word`, in plain form, or of its singular."""
    word = re.sub(r"^(?:an?|the|to|be) (?=.)", "", word)
    for form in (word, word.removesuffix("s"), word.removesuffix("es")):
        at = _words().find(f"\n{form}".encode() + b"\t") if 1 < len(form) <= MAX_WORD_CHARS else -1
        at = at if at >= 0 else _words().find(f"\n{form}=".encode())
        if len(form) > 1 and at >= 0:
            line = _words()[at + 1 : _words().index(b"\n", at + 1)].decode()
            cells = [*line.split("\t"), "", "", ""]
            synonyms, opposites = (tuple(filter(None, cell.split(", "))) for cell in cells[2:4])
            return DictionaryEntry(cells[0].split("=")[-1], tuple(cells[1].split("|")), synonyms, opposites, cells[4])
    return None
