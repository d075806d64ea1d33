"""Embedding inside this process, for the models that the interface names: the 896 learned dimensions of two encoders
(`pair`), in any length that may be asked for.

Shorter vectors are the beginning of the long one. Longer ones have the words of the text hashed into the dimensions
that the encoders do not fill; that is real information, and search with them was measured to be a little better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.embedded.pair import DIMENSIONS, EncoderPair
from voiceapp.engines.embedded.sparse import hashed, sparse
from voiceapp.engines.embedded.windows import Vectors, unit
from voiceapp.engines.interfaces import Provider
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.text_interfaces import EmbeddingRequest, EmbeddingResult, SparseEntry

LEXICAL_WEIGHT = 0.1
"""Share of the words in the cosine of two English texts whose vectors are longer than what the encoders fill."""
LEXICAL_WEIGHT_ELSEWHERE = 0.03
"""The same in other languages: between two languages only names are the same."""


class EmbeddedEmbedder(Provider):
    """A `TextEmbedder`. It validates an `instruct` and passes over it: its encoders find less with one than without."""

    def __init__(self) -> None:
        self._encoders = EncoderPair()

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResult:
        dense = await self._dense(request) if request.dense else None
        entries = await lanes().batch.run(_sparse, request) if request.sparse else None
        return EmbeddingResult(dense, entries)

    async def _dense(self, request: EmbeddingRequest) -> NDArray[np.float32]:
        vectors, shares = await self._encoders.embed(request.texts)
        dimension = request.dimension or DIMENSIONS
        if dimension <= DIMENSIONS:
            return unit(vectors[:, :dimension])
        return await lanes().batch.run(lengthened, vectors, shares, [text.text for text in request.texts], dimension)


def lengthened(vectors: Vectors, shares: Vectors, texts: list[str], dimension: int) -> Vectors:
    """`vectors` with the words of their texts in the dimensions that are missing; `shares` is how English they are."""
    lexical = np.stack([hashed(text, dimension - DIMENSIONS) for text in texts])
    weights = (LEXICAL_WEIGHT * shares + LEXICAL_WEIGHT_ELSEWHERE * (1 - shares))[:, np.newaxis]
    return unit(np.hstack([vectors * np.sqrt(1 - weights), lexical * np.sqrt(weights)]))


def _sparse(request: EmbeddingRequest) -> tuple[tuple[SparseEntry, ...], ...]:
    return tuple(sparse(text.ids, is_query=request.text_type == "query") for text in request.texts)
