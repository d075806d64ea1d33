"""An embedding model behind any server with OpenAI's `/embeddings`: llama.cpp, vLLM, TEI, Ollama, LocalAI."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.openai.client import ServerProvider
from voiceapp.engines.text_interfaces import EmbeddingRequest, EmbeddingResult
from voiceapp.errors import EngineRefused, EngineUnavailable

MAX_RESPONSE_BYTES = 16 * 1024 * 1024


class OpenAIEmbedder(ServerProvider):
    """A `TextEmbedder`, dense only. An `instruct` is put before a query's text, as models trained with one read it."""

    title = "embedding server"
    settings = "EMBEDDING"

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResult:
        texts = [_instructed(text.text, request) for text in request.texts]
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if request.dimension is not None:
            body["dimensions"] = request.dimension
        found = await self._server.ask("/embeddings", body, limit=MAX_RESPONSE_BYTES)
        try:
            vectors = _vectors(found["data"], len(texts))
            total = int((found.get("usage") or {}).get("total_tokens") or 0)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise EngineUnavailable("The embedding server sent something that is not a list of embeddings.") from error
        return EmbeddingResult(_of_length(vectors, request.dimension), total_tokens=total or None)


def _instructed(text: str, request: EmbeddingRequest) -> str:
    """The form that instruction-trained models (Qwen3-Embedding, E5) were trained with; documents carry none."""
    if request.instruct and request.text_type == "query":
        return f"Instruct: {request.instruct}\nQuery: {text}"
    return text


def _vectors(items: list[dict[str, Any]], count: int) -> NDArray[np.float32]:
    """The vectors by their index, shape [count, dimension], of length 1.

    Raises:
        ValueError: if they have other shapes or are not finite.
        LookupError: if one is missing.
        TypeError: if they are not numbers.
    """
    rows: list[Any] = [None] * count
    for place, item in enumerate(items):
        rows[item.get("index", place)] = _numbers(item["embedding"])
    if len(items) != count or any(row is None for row in rows):
        raise ValueError("not one vector for each text")
    return unit_vectors(rows)


def unit_vectors(rows: list[Any]) -> NDArray[np.float32]:
    """Rows of numbers as vectors of length 1.

    Raises:
        ValueError: if they have several lengths, or are not finite.
        TypeError: if they are not numbers.
    """
    vectors = np.asarray(rows, dtype=np.float32)
    if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise ValueError("not vectors of one length")
    return _unit(vectors)


def _numbers(written: object) -> NDArray[np.float32]:
    """A vector as it was asked for, or in base64, which some servers prefer."""
    if isinstance(written, str):
        return np.frombuffer(base64.b64decode(written, validate=True), dtype="<f4").astype(np.float32)
    return np.asarray(written, dtype=np.float32)


def _of_length(vectors: NDArray[np.float32], dimension: int | None) -> NDArray[np.float32]:
    """The vectors cut to the length asked for, where the server passed over it."""
    own = vectors.shape[1]
    if dimension is None or dimension == own:
        return vectors
    if dimension > own:
        raise EngineRefused(f"The model's vectors have {own} numbers; {dimension} cannot be had.")
    return _unit(vectors[:, :dimension])


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > math.ulp(0.0), lengths, 1.0), dtype=np.float32)
