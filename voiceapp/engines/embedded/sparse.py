"""Vectors made of a text's words: sparse ones over the vocabulary, and dense ones into which the words are hashed.

Both are lexical: they find the words of a query, not what is meant by them.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.embedded.vocabulary import UNKNOWN, rarity, words
from voiceapp.engines.models import tokens
from voiceapp.engines.text_interfaces import SparseEntry

K1 = 1.2
B = 0.75
MEAN_TOKENS = 200
"""Length of a text that is neither long nor short; fixed, because vectors of different requests meet."""


def sparse(ids: Sequence[int], *, is_query: bool) -> tuple[SparseEntry, ...]:
    """One entry for each word piece of a text, by index; the product of a query's and a document's is near BM25.

    Documents weigh by how often a piece occurs, queries by how rare it is in English. Marks are left out, and what
    the vocabulary does not have.
    """
    counts = Counter(ids)
    length = K1 * (1 - B + B * len(ids) / MEAN_TOKENS)
    return tuple(
        SparseEntry(piece, rarity(piece) if is_query else count * (K1 + 1) / (count + length), name)
        for piece, count in sorted(counts.items())
        if (name := _name(piece))
    )


def hashed(text: str, width: int) -> NDArray[np.float32]:
    """The words of a text in `width` dimensions, of length 1; zeros for a text without words.

    Each word has a place and a sign; two words that share a place disturb each other as often as they help.
    """
    vector = np.zeros(width, dtype=np.float32)
    for word, count in Counter(words(text)).items():
        number = _number(word)
        vector[(number >> 1) % width] += (1 if number & 1 else -1) * (1 + math.log(count))
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector


@lru_cache(maxsize=32_768)
def _number(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


@cache
def _name(piece: int) -> str:
    """The piece as the vocabulary spells it; empty for one that does not count."""
    name: str = tokens.tokenizer().id_to_token(piece)
    return name if piece != UNKNOWN and any(letter.isalnum() for letter in name) else ""
