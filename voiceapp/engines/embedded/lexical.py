"""Words of documents and questions: BM25, and how much of a question a text covers."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75
IMAGINED_DOCUMENTS = 10

_STOP_WORDS = (
    "a about all also am an and any anything are as at be been being but by can cannot could did do does doing for "
    "from get give gives go going had has have having he her here him his how i if in into is it its just know let "
    "like me mean more most much my need no not now of off on one or other our out over please she should so some "
    "something such tell than that the their them then there these they thing things this those to too up us use "
    "used very want was way we were what when where which who why will with would yes you your"
)
_IGNORED = frozenset(_STOP_WORDS.split())
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("ly", ""))


def terms(text: str) -> list[str]:
    """The content words of `text`, lower case and stemmed lightly."""
    return [_stem(word) for word in re.findall(r"[^\W_]+", text.lower()) if word not in _IGNORED]


def _stem(word: str) -> str:
    """Cut the endings that a question and its reply most often differ in."""
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: len(word) - len(ending)] + replacement
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "aeiousl":
        word = word[:-1]  # "running", "stopped"
    return word.rstrip("e") if len(word) > 4 else word


class Lexicon:
    """Term statistics of a list of texts."""

    def __init__(
        self,
        texts: Sequence[str],
        *,
        words: Callable[[str], list[str]] = terms,
        presence: Callable[[str], float] | None = None,
    ) -> None:
        """`words` splits a text; `presence` is the share of all documents in the language that hold a word. With it,
        texts may be few: imagined documents, which hold words as the language does, are counted beside them."""
        self._words = words
        self._presence = presence
        self._count = len(texts)
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        counted = [Counter(words(text)) for text in texts]
        lengths = [sum(counts.values()) for counts in counted]
        mean = sum(lengths) / len(lengths) if lengths and sum(lengths) else 1.0
        for place, (counts, length) in enumerate(zip(counted, lengths, strict=True)):
            for term, count in counts.items():
                saturated = count * (K1 + 1) / (count + K1 * (1 - B + B * length / mean))
                self._postings[term].append((place, saturated))
        self._terms = [frozenset(counts) for counts in counted]

    def scores(self, query: str) -> NDArray[np.float32]:
        """BM25 of each text, divided by the most it could be: within [0, 1]."""
        scores = np.zeros(self._count, dtype=np.float32)
        bound = 0.0
        for term in set(self._words(query)):
            idf = self._idf(term)
            bound += idf * (K1 + 1)
            for place, saturated in self._postings.get(term, ()):
                scores[place] += idf * saturated
        return scores / bound if bound else scores

    def coverage(self, query: str, place: int) -> float:
        """Share of the query's weight in words that text number `place` holds."""
        return self._share(query, self._terms[place])

    def overlap(self, query: str, text: str) -> float:
        """The same for a text from outside the list."""
        return self._share(query, frozenset(self._words(text)))

    def _share(self, query: str, held: frozenset[str]) -> float:
        asked = set(self._words(query))
        total = sum(map(self._idf, asked))
        return sum(self._idf(term) for term in asked & held) / total if total else 0.0

    def _idf(self, term: str) -> float:
        held: float = len(self._postings.get(term, ()))
        count = self._count
        if self._presence is not None:
            held += IMAGINED_DOCUMENTS * self._presence(term)
            count += IMAGINED_DOCUMENTS
        return math.log(1 + (count - held + 0.5) / (held + 0.5))
