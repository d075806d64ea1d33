"""Cuts in a text that is still being written, so that it can be spoken while the rest is on its way.

`SentenceSplitter` takes text as it comes and gives back pieces that sound whole. Nothing is lost or changed: the
pieces joined are the text. What is in a piece depends on the text alone, not on how it was cut into deltas.
"""

from __future__ import annotations

import re

FIRST_CLAUSE_CHARS = 25
"""From this length on the very first piece may end at a clause: sound starts sooner, yet there are
words enough for a natural tone."""

MAX_PIECE_CHARS = 300
"""Longer pieces are cut at a space: about 20 s of speech."""

_END = re.compile(
    r"""
      (?P<stop>[.!?…]+)(?P<after>["'”’»)\]*_`]*)(?=\s)    # Latin: a stop, closing marks, then white space
    | [。！？；｡]+["'”’」』）】》]*                            # CJK: white space does not follow
    | (?P<clause>[,;:—–][”’"')]*)(?=\s+[^\s\d]) | (?P<wide_clause>[，、：]+)
    | (?P<line>\n)
    """,
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"[^\s(\[\"“‘«]{0,12}$")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_ENDS = _words(
    "dr mr mrs ms mx prof st rev gen sen rep gov capt lt col sgt hon vs viz cf e.g i.e eg ie ca approx fig figs eq "
    "sec ch vol pp al jan feb mar apr jun jul aug sep sept oct nov dec mt ft dept est"
)
"""Abbreviations after which a sentence goes on."""
_MAY_END = _words(
    "etc a.m p.m am pm u.s u.k u.n e.u inc ltd co corp jr sr ph.d b.c a.d min max hr hrs kg km cm mm lb oz"
)
"""Abbreviations that may be the last word: the next word's capital letter tells."""
_BEFORE_NUMBER = _words("no nos p")
"""Abbreviations only before a number: "No. 5", but "No. I did not."."""


def _last_word(text: str) -> str:
    found = _LAST_WORD.search(text)
    return found[0] if found else ""


class SentenceSplitter:
    """Cuts one reply into pieces to speak."""

    def __init__(self, *, first_clause_chars: int = FIRST_CLAUSE_CHARS, max_piece_chars: int = MAX_PIECE_CHARS) -> None:
        """`first_clause_chars=0` never cuts at a clause."""
        self._first_clause_chars = first_clause_chars
        self._max_piece_chars = max_piece_chars
        self.rest = ""
        """Text that waits for more."""
        self._is_first = True
        self._seen = 0

    def feed(self, text: str) -> list[str]:
        """Add text; the pieces that are complete now, in order. A piece keeps the white space around it."""
        self.rest += text
        return self._take(is_final=False)

    def take_words(self) -> str:
        """The rest up to its last word that is whole, for a listener who has waited long enough."""
        cut = max((match.end() for match in re.finditer(r"\S\s+|[\u3040-\u9fff]", self.rest)), default=0)
        words, self.rest, self._seen = self.rest[:cut], self.rest[cut:], 0
        self._is_first = self._is_first and not words
        return words

    def flush(self) -> list[str]:
        """The text has ended: everything that is left. The last piece may be white space only."""
        pieces = self._take(is_final=True)
        if self.rest:
            pieces.append(self.rest)
        self.rest = ""
        self._is_first = True
        self._seen = 0
        return pieces

    def _take(self, *, is_final: bool) -> list[str]:
        pieces = []
        while (cut := self._next_cut(is_final=is_final)) is not None:
            pieces.append(self.rest[:cut])
            self.rest = self.rest[cut:]
            self._is_first = False
            self._seen = 0
        return pieces

    def _next_cut(self, *, is_final: bool) -> int | None:
        """Return the end of the first piece of the rest; None to wait for more (or, when final, to take all of it)."""
        window = self.rest[: self._max_piece_chars]
        is_closed = is_final or len(self.rest) > len(window)
        for match in _END.finditer(window, self._seen):
            if not is_closed and match.end() == len(window):
                return None  # the next character may belong to this stop
            verdict = self._judge(window, match)
            if verdict is True:
                return self._after(match)
            if verdict is None and not is_closed:
                return None
            self._seen = match.end()
        if len(self.rest) <= self._max_piece_chars:
            return None
        return self._forced_cut(window)

    @staticmethod
    def _after(match: re.Match[str]) -> int:
        """One white-space character goes with the sentence before it; the looked-ahead one is there."""
        takes_space = match["stop"] is not None or match["clause"] is not None
        return match.end() + 1 if takes_space else match.end()

    def _judge(self, text: str, match: re.Match[str]) -> bool | None:
        """Return whether the piece ends here; None when the next word is needed to tell."""
        before = text[: match.start()]
        if match["clause"] or match["wide_clause"]:
            return self._is_first and 0 < self._first_clause_chars <= len(text[: match.end()].strip())
        if not before.strip():
            return False
        if match["stop"] != "." or match["after"]:
            return True
        word = _last_word(before).lower()
        if word in _NEVER_ENDS or (len(word) == 1 and word.isalpha() and word != "i"):
            return False
        if word.isdigit() and before.strip() == word:
            return False  # the number of a list's item: "1. Open the page"
        if word in _MAY_END or word in _BEFORE_NUMBER:
            following = text[match.end() :].lstrip()
            if not following:
                return None
            return not following[0].isdigit() if word in _BEFORE_NUMBER else not following[0].islower()
        return True

    def _forced_cut(self, window: str) -> int:
        """No sentence ends in the window: the last clause of its second half, or its last space, or its end."""
        half = len(window) // 2
        clauses = [
            self._after(match) for match in _END.finditer(window, half) if match["clause"] or match["wide_clause"]
        ]
        if clauses:
            return clauses[-1]
        spaces = [match.end() for match in re.finditer(r"\s", window)]
        is_useful = bool(spaces) and bool(window[: spaces[-1]].strip())
        return spaces[-1] if is_useful else len(window)
