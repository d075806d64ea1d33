"""Times of the words of speech, for the voices that know them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from voiceapp.protocol.speaking.echoed_words import letters
from voiceapp.protocol.work import SpokenText

_WRITTEN = re.compile(r"\S+")
MOST_WRITTEN = 2
"""Words of the text that are compared, for each that is spoken."""


class SpokenWord(NamedTuple):
    """A word as the voice reads it, where a number may be several."""

    text: str
    begin: float
    end: float
    """From the beginning of a sound, in its samples or in seconds."""


class TimedSpeech(bytes):
    """A chunk of speech, with the words that became known with it; their seconds count from where it begins."""

    words: Sequence[SpokenWord] = ()


def timed(pcm: bytes, words: Sequence[SpokenWord]) -> TimedSpeech:
    found = TimedSpeech(pcm)
    found.words = words
    return found


def placed(text: str, begin: int, spoken: Sequence[SpokenWord]) -> Iterator[SpokenText]:
    """Yield the words of `text` from the character `begin` on that are spoken, as far as that is known.

    What is written as it is read has its exact time. What lies between, such as a price, shares the time between.
    """
    said = [word for word in spoken if letters(word.text)]
    written = list(_WRITTEN.finditer(text, begin))
    compared = written[: MOST_WRITTEN * len(said) + 4]
    alike = SequenceMatcher(
        None, [letters(word[0]) for word in compared], [letters(word.text) for word in said], autojunk=False
    )
    first, heard, since_s = 0, 0, said[0].begin if said else 0.0
    for start, other, size in alike.get_matching_blocks():
        if not size and len(written) - first > len(said) - heard:
            return  # the rest is said later
        until_s = said[other - 1].end if other > heard else said[other].begin if size else since_s
        if other > heard:
            since_s = said[heard].begin
        yield from _shared(written[first : start if size else None], since_s, until_s)
        for word, its in zip(written[start : start + size], said[other : other + size], strict=True):
            yield SpokenText(word.end(), its.begin * 1000, its.end * 1000)
        first, heard = start + size, other + size
        since_s = said[heard - 1].end if heard else since_s


def _shared(words: Sequence[re.Match[str]], begin_s: float, end_s: float) -> Iterator[SpokenText]:
    """Share a time between words by their lengths."""
    whole, done = sum(len(word[0]) for word in words), 0
    for word in words:
        begin, done = done, done + len(word[0])
        times = (1000 * (begin_s + (end_s - begin_s) * part / whole) for part in (begin, done))
        yield SpokenText(word.end(), *times)
