"""Clauses that more will follow, and questions that are whole, by their words: what a voice alone leaves in doubt."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from voiceapp.protocol.hearing.captions import bare

LONGEST_CALL = 2
"""Most words of a call without a request, such as "Hello?" or "Hey Robin"."""
SHORTEST_QUESTION = 3


class Clause(Enum):
    """Kinds of endings of a turn by its words."""

    UNKNOWN = "unknown"
    OPEN = "open"
    """More will follow: a lone call, a conjunction or an article at the end, half of a condition."""
    UNSURE = "unsure"
    """One word, which may be an answer or a name before a request; or a comma, as recognition likes to set."""
    WHOLE = "whole"
    """A question that lacks nothing."""


@dataclass(frozen=True, slots=True)
class ClauseWords:
    """The words of a language that open and close clauses."""

    calls: frozenset[str]
    """They call somebody, and the request follows."""
    auxiliaries: frozenset[str]
    """One of them is among the first words of a whole question."""
    subordinate: frozenset[str]
    """A clause that begins with them needs another one."""
    unfinished: frozenset[str]
    """No sentence ends with them."""


def _by_language() -> dict[str, ClauseWords]:
    data = tomllib.loads(Path(__file__).with_name("clause_words.toml").read_text(encoding="utf-8"))
    return {
        code: ClauseWords(**{name: frozenset(words.split()) for name, words in lists.items()})
        for code, lists in data.items()
    }


CLAUSE_WORDS = _by_language()
"""By ISO 639-1 code. Turns in another language are judged by their sound alone."""


def clause(words: str, language: str) -> Clause:
    """Judge the words of a turn so far, with the marks that the recognizer set."""
    known = CLAUSE_WORDS.get(language.lower().split("-")[0])
    said = [bare(word) for word in words.split()]
    if known is None or not said:
        return Clause.UNKNOWN
    is_question = words.endswith("?")
    is_call = said[0] in known.calls and len(said) <= LONGEST_CALL
    is_subordinate = said[0] in known.subordinate and "," not in words and not is_question
    if said[-1] in known.unfinished or is_call or is_subordinate:
        return Clause.OPEN
    if is_question and len(said) >= SHORTEST_QUESTION and not known.auxiliaries.isdisjoint(said[:3]):
        return Clause.WHOLE
    return Clause.UNSURE if len(said) == 1 or words.endswith((",", "-", "…", "...")) else Clause.UNKNOWN
