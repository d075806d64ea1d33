"""Embedding inside this process, for the models that the interface names: MiniLM's 384 learned dimensions, in any
length that may be asked for.

Shorter vectors are the beginning of the long one. Longer ones have the words of the text hashed into the dimensions
that MiniLM does not fill; that is real information, and search with them was measured to be a little better.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.embedded.embedding import DIMENSIONS, MiniLM, Vectors, unit
from voiceapp.engines.embedded.sparse import hashed, sparse
from voiceapp.engines.lanes import lanes
from voiceapp.engines.text_interfaces import EmbeddingAnswer, EmbeddingCapabilities, EmbeddingRequest, SparseEntry

LEXICAL_WEIGHT = 0.2
"""Share of the words in the cosine of two vectors that are longer than MiniLM's."""


class MiniLMEmbedder:
    """A `TextEmbedder`. It validates an `instruct` and passes over it: MiniLM finds less with one than without."""

    def __init__(
        self, *, dimensions: Collection[int], default_dimension: int = DIMENSIONS, has_instruct: bool = False
    ) -> None:
        self.capabilities = EmbeddingCapabilities(
            dimensions=frozenset(dimensions),
            default_dimension=default_dimension,
            has_sparse=True,
            has_instruct=has_instruct,
        )
        self._model = MiniLM()

    async def embed(self, request: EmbeddingRequest) -> EmbeddingAnswer:
        """Raises EngineUnavailable when the weights are missing or the lane is full."""
        dense = await self._dense(request) if request.dense else None
        entries = await lanes().batch.run(_sparse, request) if request.sparse else None
        return EmbeddingAnswer(dense, entries)

    async def _dense(self, request: EmbeddingRequest) -> NDArray[np.float32]:
        vectors = await self._model.embed_tokens([text.ids for text in request.texts])
        dimension = request.dimension or DIMENSIONS
        if dimension <= DIMENSIONS:
            return unit(vectors[:, :dimension])
        return await lanes().batch.run(lengthened, vectors, [text.text for text in request.texts], dimension)


def lengthened(vectors: Vectors, texts: list[str], dimension: int) -> Vectors:
    """`vectors` with the words of their texts in the dimensions that are missing."""
    lexical = np.stack([hashed(text, dimension - DIMENSIONS) for text in texts])
    return unit(np.hstack([vectors * math.sqrt(1 - LEXICAL_WEIGHT), lexical * math.sqrt(LEXICAL_WEIGHT)]))


def _sparse(request: EmbeddingRequest) -> tuple[tuple[SparseEntry, ...], ...]:
    return tuple(sparse(text.ids, is_query=request.text_type == "query") for text in request.texts)
