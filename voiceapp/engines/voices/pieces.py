"""Cuts of a text for the voices: pieces that are made at one go, each in one script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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

_SENTENCE = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+|\n+")
_CLAUSE = re.compile(r"(?<=[,;:，；：])[\"'”’)\]]*\s*|(?<!\s)\s+[-–—]+\s+")
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


def pieces(text: str) -> Iterator[Piece]:
    """`text` in pieces of at most 220 characters, the first one short; what nobody pronounces is left out."""
    is_first = True
    for sentence in _cut(text, _SENTENCE):
        parts = [sentence]
        if len(sentence) > (FIRST_CHARS if is_first else MAX_CHARS):
            parts = _joined(_cut(sentence, _CLAUSE), LEAST_CHARS if is_first else MAX_CHARS)
        runs = [run for long in parts for part in _at_words(long) for run in _runs(part)]
        for number, (run, script) in enumerate(runs, start=1):
            yield Piece(run, is_sentence=number == len(runs), script=script)
            is_first = False


def _cut(text: str, boundary: re.Pattern[str]) -> list[str]:
    """`text` behind each boundary, white space around the parts left out."""
    ends = [match.end() for match in boundary.finditer(text)]
    parts = (text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [part for part in parts if _SPOKEN.search(part)]


def _joined(clauses: list[str], first: int) -> list[str]:
    """Clauses put together as far as they fit, the first part ending as soon as it has `first` characters."""
    parts: list[str] = []
    for clause in clauses:
        is_open = bool(parts) and len(parts[-1]) + len(clause) < MAX_CHARS
        if is_open and (len(parts) > 1 or len(parts[0]) < first):
            parts[-1] += f" {clause}"
        else:
            parts.append(clause)
    return parts


def _at_words(text: str) -> Iterator[str]:
    while len(text) > MAX_CHARS:
        cut = text.rfind(" ", MAX_CHARS // 2, MAX_CHARS)
        cut = cut if cut > 0 else MAX_CHARS
        yield text[:cut]
        text = text[cut:].lstrip()
    yield text


def _runs(text: str) -> Iterator[tuple[str, str]]:
    """Parts of `text` in one script each, and which; marks and numbers go with the words before them."""
    is_japanese = _KANA.search(text) is not None  # and written with Chinese characters, too
    begin, script = 0, None
    for word in _WORD.finditer(text):
        found = "ja" if is_japanese and word.lastgroup == "zh" else word.lastgroup or ""
        if script is not None and found != script:
            yield text[begin : word.start()], script
            begin = word.start()
        script = found
    yield text[begin:], script or ""
