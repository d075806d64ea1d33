"""Reranking inside this process: BM25 over all documents, two encoders over those that BM25 likes best, fused.

The order comes from both scores made comparable within the request (z-scores); that ordered better than either alone
and than fusing ranks. The relevance that is told comes from the same scores by constants that never change, so
that one call's scores compare with another's, smoothed so that they never contradict the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.embedded.english import share_of_english
from voiceapp.engines.embedded.pair import DIMENSIONS, EncoderPair
from voiceapp.engines.embedded.recent_vectors import RecentVectors
from voiceapp.engines.embedded.vocabulary import scores_by_words
from voiceapp.engines.interfaces import Provider
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.models.tokens import Counted, count
from voiceapp.engines.text_interfaces import Ranked, Ranking, RerankRequest

EVEN_SHARE = 0.5
"""A text is English from here on."""
CANDIDATES = 100
"""English documents that the encoders read for an English query: the best by BM25. Reading all was measured
to gain nothing. What is in another language is read in any case, by the faster of the two encoders."""
KEPT_VECTORS = 4_000
"""15 MB."""

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Scale:
    """Weights of a likeness, and its scale as relevance."""

    dense_weight: float
    """Weight of the cosine, beside BM25."""
    even: float
    """Likeness that is told as a relevance of one half."""
    spread: float
    """By how much likeness has to rise from there for a relevance of 0.73."""

    def towards(self, other: Scale, share: float) -> Scale:
        """The scale between the two, `other` at a `share` of 1."""

        def between(one: float, another: float) -> float:
            return one + (another - one) * share

        return Scale(
            between(self.dense_weight, other.dense_weight),
            between(self.even, other.even),
            between(self.spread, other.spread),
        )


ENGLISH = Scale(dense_weight=0.7, even=0.3, spread=0.08)
ELSEWHERE = Scale(dense_weight=0.9, even=0.15, spread=0.05)
"""For a query in another language: English documents share no more than names with it, and cosines are smaller."""


@dataclass(frozen=True, slots=True)
class Dense:
    """Cosines of some of the documents with the query."""

    places: NDArray[np.int64]
    cosines: Scores


class FusedReranker(Provider):
    """A `Reranker`. An `instruct` is passed over: neither half of it understands one."""

    def __init__(self) -> None:
        self._encoders = EncoderPair()
        self._recent = RecentVectors(capacity=KEPT_VECTORS)

    async def rerank(self, request: RerankRequest) -> Ranking:
        texts = [document.text for document in request.documents]
        lexical = await lanes().batch.run(scores_by_words, request.query.text, texts)
        english = await lanes().batch.run(_shares, (request.query, *request.documents))
        places = _to_be_read(lexical, english)
        vectors = await self._vectors([request.query, *(request.documents[place] for place in places)])
        # Sums differ in their last bits with the row: equal texts shall be equal, wherever they stand.
        dense = Dense(places, np.round(vectors[1:] @ vectors[0], 6))
        return ranking(lexical, dense, scale=ELSEWHERE.towards(ENGLISH, float(english[0])))

    async def _vectors(self, texts: Sequence[Counted]) -> NDArray[np.float32]:
        """Return a vector for each text, shape [texts, 896]; zeros for one without tokens."""
        keys = [self._recent.key(text.text) for text in texts]
        found = {key: self._recent.get(key) for key in keys}
        unread = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None and text.ids}
        vectors, _ = await self._encoders.embed(list(unread.values()))
        for key, vector in zip(unread, vectors, strict=True):
            self._recent.put(key, vector)
            found[key] = vector
        nothing = np.zeros(DIMENSIONS, dtype=np.float32)
        return np.stack([nothing if (vector := found[key]) is None else vector for key in keys])

    async def warm(self) -> None:
        """Load the models, so that the first request does not wait for them."""
        await self._vectors(await count(["ready"]))


def _shares(texts: Sequence[Counted]) -> Scores:
    return np.array([share_of_english(text.ids) for text in texts], dtype=np.float32)


def _to_be_read(lexical: Scores, english: Scores) -> NDArray[np.int64]:
    """The documents that the encoders read, by `english`: that of the query, and that of each document."""
    is_foreign = (english[1:] < EVEN_SHARE) | (english[0] < EVEN_SHARE)
    is_liked = np.zeros(len(lexical), dtype=bool)
    is_liked[np.argsort(-lexical, kind="stable")[:CANDIDATES]] = True
    return np.flatnonzero(is_liked | is_foreign)


def ranking(lexical: Scores, dense: Dense, *, scale: Scale = ENGLISH) -> Ranking:
    """All documents, best first: those with a cosine, then the others as BM25 has them."""
    fused = scale.dense_weight * _z(dense.cosines) + (1 - scale.dense_weight) * _z(lexical[dense.places])
    read = dense.places[np.argsort(-fused, kind="stable")]
    unread = np.setdiff1d(np.arange(len(lexical)), read)
    unread = unread[np.argsort(-lexical[unread], kind="stable")]
    # A document that was not read is taken to be as far from the query as the farthest that was.
    cosines = np.full(len(lexical), dense.cosines.min(initial=1.0), dtype=np.float32)
    cosines[dense.places] = dense.cosines
    likeness = scale.dense_weight * cosines + (1 - scale.dense_weight) * lexical
    order = np.concatenate([read, unread])
    relevance = never_rising(1 / (1 + np.exp((scale.even - likeness[order]) / scale.spread)))
    return Ranking([Ranked(int(place), float(score)) for place, score in zip(order, relevance, strict=True)])


def never_rising(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """The nearest scores (least squares) that never rise: each stretch that does becomes its mean."""
    levels: list[tuple[float, int]] = []
    for score in scores:
        level, width = float(score), 1
        while levels and levels[-1][0] < level:
            before, count = levels.pop()
            level = (before * count + level * width) / (count + width)
            width += count
        levels.append((level, width))
    return np.repeat([level for level, _ in levels], [width for _, width in levels])


def _z(scores: Scores) -> Scores:
    spread = scores.std()
    standard: Scores = (scores - scores.mean()) / spread if spread > 0 else np.zeros_like(scores)
    return standard
