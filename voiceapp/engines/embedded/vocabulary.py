"""Frequency of English words, from the embedding model's vocabulary, which is ordered by it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.embedded.lexical import Lexicon, terms
from voiceapp.engines.models import tokens

FIRST_WORD = 1_996
"""Number of the most frequent word. Marks and single characters come before it, by code point."""
LAST_RANK = 28_526
UNKNOWN = 100
"""The piece for what the vocabulary does not have."""
COMMON_RANKS = 300
"""Where, in the ranks, a piece begins to say something about a text; ordered best in measurements of search."""
TOP_FREQUENCY = 0.1
"""Share of the most frequent word in English; that of rank r is about an r-th of it (Zipf)."""
DOCUMENT_WORDS = 150
MAX_WORD_CHARS = 64
"""Longest text that counts as a word; words are remembered, so that they must not be of any length."""

_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@lru_cache(maxsize=32_768)
def rarity(piece: int) -> float:
    """Weight of a word piece in a query, from 0: an inverse document frequency without documents."""
    return math.log(1 + _rank(piece) / COMMON_RANKS)


@lru_cache(maxsize=32_768)
def presence(term: str) -> float:
    """Share of documents of middling length that hold `term` (as `words` gives them), about."""
    find = tokens.tokenizer().token_to_id
    ranks = [_rank(piece) for form in (term, f"{term}e") if (piece := find(form)) is not None]
    return 1 - math.exp(-DOCUMENT_WORDS * TOP_FREQUENCY / min(ranks, default=LAST_RANK))


def words(text: str) -> list[str]:
    """The content words of a text, stemmed; of scripts without spaces, the pairs of neighbouring characters."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if _WIDE.search(word):
            found += (word[at : at + 2] for at in range(max(1, len(word) - 1)))
        else:
            found += _terms(word[:MAX_WORD_CHARS])
    return found


def scores_by_words(query: str, documents: Sequence[str]) -> NDArray[np.float32]:
    """BM25 of each document of one request, which may be a single one: within [0, 1]."""
    return Lexicon(documents, words=words, presence=presence).scores(query)


@lru_cache(maxsize=32_768)
def _terms(word: str) -> tuple[str, ...]:
    return tuple(terms(word))


def _rank(piece: int) -> int:
    return piece - FIRST_WORD + 1 if piece >= FIRST_WORD else COMMON_RANKS
