"""Text as the voices read it: pieces that are made at one go, each in one script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.engines.voices.english import readable
from voiceapp.engines.voices.plain_text import plain_text

FIRST_CHARS = 60
"""A first sentence that is longer is cut at a clause, so that sound starts sooner."""
LEAST_CHARS = 12
"""Length below which a piece sounds clipped alone."""
MAX_CHARS = 220
"""About 15 s of speech."""

SCRIPTS = {
    "ar": "\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "he": "\u0590-\u05ff",
    "hi": "\u0900-\u097f",
    "ja": "\u3040-\u30ff",
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "ru": "\u0400-\u052f",
    "zh": "\u3400-\u4dbf\u4e00-\u9fff",
}
"""Ranges of characters, by the most spoken of the languages that are written with them."""
LATIN = "A-Za-z\u00aa\u00b5\u00ba\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a"

_SENTENCE_END = re.compile(r"[.!?…。！？；｡][\"'”’»」』）】》)\]]*\s*$|\n$")
_SPOKEN = re.compile(r"\w")
_WORD = re.compile(
    "|".join(f"(?P<{code}>[{chars}]+)" for code, chars in SCRIPTS.items()) + rf"|[{LATIN}]+|(?P<other>[^\W\d_]+?)"
)
_KANA = re.compile(rf"[{SCRIPTS['ja']}]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text that is made at one go."""

    text: str
    is_sentence: bool
    """A sentence ends here, so a pause follows that is longer than between clauses."""
    script: str = ""
    """Key of `SCRIPTS`, or "other"; empty for Latin letters."""


def pieces(text: str, *, language: str, longest: int = MAX_CHARS) -> Iterator[Piece]:
    """`text` for a voice of a language in pieces of at most so many characters, the first one short.

    Markup and other signs without a sound are left out.
    """
    plain = plain_text(text)
    written = readable(plain) if language == "en" else plain
    found = _cut(written, longest)
    if found and len(found[0]) > FIRST_CHARS:
        found[:1] = _cut(found[0], longest, LEAST_CHARS)
    parts = [part for part in found if _SPOKEN.search(part)]
    for place, part in enumerate(parts, start=1):
        ends = place == len(parts) or _SENTENCE_END.search(part) is not None
        runs = [*_runs(part.strip())]
        for number, (run, script) in enumerate(runs, start=1):
            yield Piece(run, is_sentence=ends and number == len(runs), script=script)
    if not parts and any(unicodedata.category(char) == "So" for char in plain):
        yield Piece(plain, is_sentence=True, script="other")  # emoji, whose names espeak-ng knows


def _cut(text: str, longest: int, first_chars: int = 0) -> list[str]:
    splitter = SentenceSplitter(first_clause_chars=first_chars, max_piece_chars=longest)
    return [*splitter.feed(text), *splitter.flush()]


def _runs(text: str) -> Iterator[tuple[str, str]]:
    """Parts of `text` in one script each, and which; marks and numbers go with the words before them."""
    is_japanese = _KANA.search(text) is not None  # and written with Chinese characters, too
    begin, script = 0, None
    for word in _WORD.finditer(text):
        if unicodedata.category(word[0][0]) in ("Lm", "No"):
            continue  # as in m², ½ and Hawaiʻi
        found = "ja" if is_japanese and word.lastgroup == "zh" else word.lastgroup or ""
        if script is not None and found != script:
            yield text[begin : word.start()], script
            begin = word.start()
        script = found
    yield text[begin:], script or ""
