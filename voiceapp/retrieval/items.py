"""Vectors as the wire has them, in the answer to a call and in a line of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.text_interfaces import EmbeddingResult

DECIMALS = 8
"""Decimals of the numbers in a vector: the precision of a 32-bit float without the noise behind."""


def native_items(answer: EmbeddingResult, count: int) -> list[dict[str, Any]]:
    """An EmbeddingItem for each of `count` texts."""
    dense: list[Any] = [[]] * count if answer.dense is None else numbers(answer.dense)
    items: list[dict[str, Any]] = [{"embedding": vector, "text_index": place} for place, vector in enumerate(dense)]
    for item, entries in zip(items, answer.sparse or (), strict=False):
        item["sparse_embedding"] = [
            {"index": entry.index, "value": round(entry.value, DECIMALS), "token": entry.token} for entry in entries
        ]
    return items


def numbers(vectors: NDArray[np.float32]) -> list[list[float]]:
    found: list[list[float]] = vectors.astype(np.float64).round(DECIMALS).tolist()
    return found
