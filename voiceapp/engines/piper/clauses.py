"""Cuts of a text for a neural voice: pieces that are made at one go, and in them clauses with their marks.

espeak-ng drops the marks that end clauses, and the models learned their melody from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

FIRST_CHARS = 60
"""A first sentence that is longer is cut at a clause, so that sound starts sooner."""
LEAST_CHARS = 12
"""Length below which a piece sounds clipped alone."""
MAX_CHARS = 220
"""About 15 s of speech, and 0.7 s of work."""

_SENTENCE = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+|\n+")
_CLAUSE = re.compile(r"(?<=[,;:，；：])[\"'”’)\]]*\s*|(?<!\s)\s+[-–—]+\s+")
_PARTS = re.compile(r"(.+?)([.,;:!?…。，；：！？]+(?=[\"'”’)\]]*(?:\s|$))|[。，；：！？]|\s[-–—]+\s|$)", re.DOTALL)
_MARKS = str.maketrans("。，；：！？…—–-", ".,;:!?.,,,")
_SPOKEN = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text that is made at one go."""

    clauses: tuple[str, ...]
    marks: tuple[str, ...]
    """One of `.,;:!?` behind each clause."""
    is_sentence: bool
    """A sentence ends here, so a pause follows that is longer than between clauses."""

    def phonemes(self, of_clauses: list[str]) -> str:
        """The phonemes of the piece, from those of its clauses."""
        pairs = zip(of_clauses, self.marks, strict=True)
        return " ".join(phonemes + mark for phonemes, mark in pairs if phonemes)


def pieces(text: str) -> Iterator[Piece]:
    """`text` in pieces of at most 220 characters, the first one short; what nobody pronounces is left out."""
    is_first = True
    for sentence in _cut(text, _SENTENCE):
        parts = [sentence]
        if len(sentence) > (FIRST_CHARS if is_first else MAX_CHARS):
            parts = _joined(_cut(sentence, _CLAUSE), LEAST_CHARS if is_first else MAX_CHARS)
        short = [part for long in parts for part in _at_words(long)]
        for number, part in enumerate(short, start=1):
            if piece := _piece(part, is_sentence=number == len(short)):
                yield piece
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


def _piece(text: str, *, is_sentence: bool) -> Piece | None:
    clauses: list[str] = []
    marks: list[str] = []
    for found in _PARTS.finditer(text):
        words, mark = found[1].strip(), found[2].strip()
        if not _SPOKEN.search(words):
            continue
        clauses.append(words)
        marks.append(_mark(mark))
    if not clauses:
        return None
    if marks[-1] == "":
        marks[-1] = "." if is_sentence else ","
    return Piece(tuple(clauses), tuple(mark or "," for mark in marks), is_sentence)


def _mark(mark: str) -> str:
    plain = mark.translate(_MARKS)
    return next((each for each in "?!.;:," if each in plain), "")
