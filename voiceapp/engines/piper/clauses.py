"""Clauses of a piece, with their marks: espeak-ng drops the marks, and the models learned their melody from them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from voiceapp.engines.voices.pieces import Piece

_PARTS = re.compile(r"(.+?)([.,;:!?…。，；：！？]+(?=[\"'”’)\]]*(?:\s|$))|[。，；：！？]|\s[-–—]+\s|$)", re.DOTALL)
_MARKS = str.maketrans("。，；：！？…—–-", ".,;:!?.,,,")
_SPOKEN = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Clauses:
    texts: tuple[str, ...]
    marks: tuple[str, ...]
    """One of `.,;:!?` behind each clause."""

    def phonemes(self, of_texts: list[str]) -> str:
        pairs = zip(of_texts, self.marks, strict=True)
        return " ".join(phonemes + mark for phonemes, mark in pairs if phonemes)


def clauses(piece: Piece) -> Clauses:
    found = [(part[1].strip(), _mark(part[2].strip())) for part in _PARTS.finditer(piece.text)]
    spoken = [(text, mark) for text, mark in found if _SPOKEN.search(text)]
    last = "." if piece.is_sentence else ","
    marks = [mark or (last if place == len(spoken) else ",") for place, (_, mark) in enumerate(spoken, start=1)]
    return Clauses(tuple(text for text, _ in spoken), tuple(marks))


def _mark(mark: str) -> str:
    plain = mark.translate(_MARKS)
    return next((each for each in "?!.;:," if each in plain), "")
