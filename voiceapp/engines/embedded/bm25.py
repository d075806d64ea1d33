"""BM25 over the documents of one request, which may be a single one.

How rare a word is comes from the request's documents, on top of some imagined ones that hold words as English does:
with a hundred documents these hardly count, and with one they decide.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.embedded.vocabulary import presence, words

K1 = 1.2
B = 0.75
IMAGINED_DOCUMENTS = 10


def scores(query: str, documents: Sequence[str]) -> NDArray[np.float32]:
    """Of each document, divided by the most it could be: within [0, 1]."""
    asked = set(words(query))
    counted = [_counted(document, asked) for document in documents]
    mean = sum(length for _, length in counted) / max(1, len(counted)) or 1.0
    weights = {term: _rarity(term, counted) for term in asked}
    bound = sum(weights.values()) * (K1 + 1)
    found = np.zeros(len(documents), dtype=np.float32)
    for place, (counts, length) in enumerate(counted):
        norm = K1 * (1 - B + B * length / mean)
        found[place] = sum(weights[term] * count * (K1 + 1) / (count + norm) for term, count in counts.items())
    return found / np.float32(bound) if bound else found


def _counted(document: str, asked: set[str]) -> tuple[Counter[str], int]:
    """How often a document holds each of the query's words, and how many words it has."""
    held = words(document)
    return Counter(word for word in held if word in asked), len(held)


def _rarity(term: str, counted: Sequence[tuple[Counter[str], int]]) -> float:
    holding = sum(term in counts for counts, _ in counted) + IMAGINED_DOCUMENTS * presence(term)
    total = len(counted) + IMAGINED_DOCUMENTS
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))
