"""Reranking inside this process: BM25 over all documents, MiniLM over those that BM25 likes best, fused.

The order comes from both scores made comparable within the request (z-scores); that ordered better than either alone
and than fusing ranks. The relevance that is told comes from the same scores by constants that never change, so
that one call's scores compare with another's, smoothed so that they never contradict the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.embedded import bm25
from voiceapp.engines.embedded.embedding import MiniLM
from voiceapp.engines.embedded.recent_vectors import RecentVectors
from voiceapp.engines.embedded.vocabulary import UNKNOWN
from voiceapp.engines.lanes import lanes
from voiceapp.engines.text_interfaces import Ranked, Ranking, RerankRequest
from voiceapp.engines.tokens import Counted

DENSE_WEIGHT = 0.7
CANDIDATES = 100
"""How many documents are read by the model: the ones BM25 likes best. Reading all was measured to gain nothing."""
EVEN_SCORE = 0.3
"""Fused likeness that is told as a relevance of one half."""
SPREAD = 0.08
"""By how much likeness has to rise from there for a relevance of 0.73."""
KEPT_VECTORS = 10_000
"""15 MB."""

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Dense:
    """Cosines of some of the documents with the query."""

    places: NDArray[np.int64]
    cosines: Scores


class FusedReranker:
    """A `Reranker`. An `instruct` is passed over: neither half of it understands one."""

    def __init__(self) -> None:
        self._model = MiniLM()
        self._recent = RecentVectors(capacity=KEPT_VECTORS)

    async def rerank(self, request: RerankRequest) -> Ranking:
        """Raises EngineUnavailable when the weights are missing or the lane is full."""
        texts = [document.text for document in request.documents]
        lexical = await lanes().batch.run(bm25.scores, request.query.text, texts)
        places = np.sort(np.argsort(-lexical, kind="stable")[:CANDIDATES])
        vectors = await self._vectors([request.query, *(request.documents[place] for place in places)])
        # Sums differ in their last bits with the row: equal texts shall be equal, wherever they stand.
        dense = Dense(places, np.round(vectors[1:] @ vectors[0], 6))
        return ranking(lexical, dense, dense_weight=DENSE_WEIGHT * _known(request.query))

    async def _vectors(self, texts: Sequence[Counted]) -> NDArray[np.float32]:
        """Of each text, shape [texts, 384]; zeros for one without tokens."""
        keys = [self._recent.key(text.text) for text in texts]
        found = {key: self._recent.get(key) for key in keys}
        unread = {key: text.ids for key, text in zip(keys, texts, strict=True) if found[key] is None and text.ids}
        for key, vector in zip(unread, await self._model.embed_tokens(list(unread.values())), strict=True):
            self._recent.put(key, vector)
            found[key] = vector
        nothing = np.zeros(self._model.dimensions, dtype=np.float32)
        return np.stack([nothing if (vector := found[key]) is None else vector for key in keys])

    async def warm(self) -> None:
        """Load the model, so that the first request does not wait for it."""
        await self._model.embed(["ready"])


def ranking(lexical: Scores, dense: Dense, *, dense_weight: float) -> Ranking:
    """All documents, best first: those with a cosine, then the others as BM25 has them."""
    fused = dense_weight * _z(dense.cosines) + (1 - dense_weight) * _z(lexical[dense.places])
    read = dense.places[np.argsort(-fused, kind="stable")]
    unread = np.setdiff1d(np.arange(len(lexical)), read)
    unread = unread[np.argsort(-lexical[unread], kind="stable")]
    # A document that was not read is taken to be as far from the query as the farthest that was.
    cosines = np.full(len(lexical), dense.cosines.min(initial=1.0), dtype=np.float32)
    cosines[dense.places] = dense.cosines
    likeness = dense_weight * cosines + (1 - dense_weight) * lexical
    order = np.concatenate([read, unread])
    relevance = never_rising(1 / (1 + np.exp((EVEN_SCORE - likeness[order]) / SPREAD)))
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


def _known(query: Counted) -> float:
    """Share of the query that the model has pieces for: of other scripts it has few, and means little by them."""
    return 1 - query.ids.count(UNKNOWN) / max(1, len(query.ids))
