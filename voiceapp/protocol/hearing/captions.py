"""The words on show while somebody speaks: what was read once is not taken back in front of the reader's eyes."""

from __future__ import annotations

KEPT_S = 0.6
"""Words on show for so long stay until the final text replaces them."""
REACH = 2
"""Words that a later reading may have added or left out before the words that stay."""


class Captions:
    """The words of one utterance, reading by reading."""

    def __init__(self) -> None:
        self._shown: list[tuple[str, float]] = []
        """Each word, and since when it is on show in this place."""

    def show(self, words: list[str], now: float) -> tuple[list[str], list[str]]:
        """The words to show for a reading, as (stable, may still change): two successive ones agree on the stable."""
        before = [word for word, _ in self._shown]
        old = [place for place, (_, since) in enumerate(self._shown) if now - since >= KEPT_S]
        kept = old[-1] + 1 if old else 0
        merged = [*_latest(before[:kept], words), *words[_behind(before[:kept], words) :]]
        agreed = 0
        while agreed < min(len(before), len(merged)) and bare(before[agreed]) == bare(merged[agreed]):
            agreed += 1
        self._shown = [
            (word, self._shown[place][1] if place < len(before) and bare(before[place]) == bare(word) else now)
            for place, word in enumerate(merged)
        ]
        return merged[:agreed], merged[agreed:]


def bare(word: str) -> str:
    """A word without the marks around it, which depend on what follows."""
    return word.strip(".,!?;:…\"'").casefold()


def _latest(kept: list[str], words: list[str]) -> list[str]:
    """The words that stay, with the marks of the latest reading where it has the same ones."""
    return [
        words[place] if place < len(words) and bare(words[place]) == bare(word) else word
        for place, word in enumerate(kept)
    ]


def _behind(kept: list[str], words: list[str]) -> int:
    """Return the position in a reading at which it continues the words that stay."""
    if not kept:
        return 0
    last = bare(kept[-1])
    places = [place for place in range(1, len(words) + 1) if bare(words[place - 1]) == last]
    near = [place for place in places if abs(place - len(kept)) <= REACH]
    return min(near, key=lambda place: abs(place - len(kept)), default=len(kept))
