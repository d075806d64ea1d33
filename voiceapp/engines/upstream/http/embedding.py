"""Embedding models of another service, with the native operation: dense and sparse vectors, and instructs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.openai.embedding import unit_vectors
from voiceapp.engines.text_interfaces import EmbeddingRequest, EmbeddingResult, SparseEntry
from voiceapp.engines.upstream.http.client import EMBEDDING_PATH, UpstreamModel
from voiceapp.errors import EngineUnavailable

MAX_RESPONSE_BYTES = 16 * 1024 * 1024


class UpstreamEmbedder(UpstreamModel):
    """A `TextEmbedder`. One per process and model."""

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResult:
        found = await self._server.ask(EMBEDDING_PATH, self._body(request), limit=MAX_RESPONSE_BYTES)
        try:
            items = _in_order(found["output"]["embeddings"], len(request.texts))
            dense = unit_vectors([item["embedding"] for item in items]) if request.dense else None
            sparse = tuple(_entries(item["sparse_embedding"]) for item in items) if request.sparse else None
            total = int((found.get("usage") or {}).get("total_tokens") or 0)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise EngineUnavailable(
                "The service that runs this model sent something that is not a list of embeddings."
            ) from error
        if dense is not None and request.dimension not in (None, dense.shape[1]):
            raise EngineUnavailable("The service that runs this model sent vectors of another length.")
        return EmbeddingResult(dense, sparse, total_tokens=total or None)

    def _body(self, request: EmbeddingRequest) -> dict[str, Any]:
        kinds = ("dense",) * request.dense + ("sparse",) * request.sparse
        parameters: dict[str, Any] = {"text_type": request.text_type, "output_type": "&".join(kinds)}
        if request.dimension is not None:
            parameters["dimension"] = request.dimension
        if request.instruct:
            parameters["instruct"] = request.instruct
        return {
            "model": self._model,
            "input": {"texts": [text.text for text in request.texts]},
            "parameters": parameters,
        }


def _in_order(items: Sequence[Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """One item for each text, by its number.

    Raises:
        ValueError: if a text has none, or several.
        LookupError: if an item has no number.
    """
    ordered = sorted(items, key=lambda item: int(item["text_index"]))
    if [item["text_index"] for item in ordered] != list(range(count)):
        raise ValueError("not one item for each text")
    return ordered


def _entries(items: Sequence[Mapping[str, Any]]) -> tuple[SparseEntry, ...]:
    entries = tuple(SparseEntry(int(item["index"]), float(item["value"]), str(item["token"])) for item in items)
    values: NDArray[np.float64] = np.array([entry.value for entry in entries])
    if not np.isfinite(values).all():
        raise ValueError("not numbers")
    return entries
