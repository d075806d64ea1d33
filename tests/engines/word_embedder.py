"""A small embedder for tests: texts are near when they share content words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.embedded.lexical import terms

WIDTH = 256


class WordEmbedder:
    def __init__(self, *, is_present: bool = True) -> None:
        self.is_present = is_present
        self.embedded: list[str] = []
        """Every text that was asked for, in order; queries excepted."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        return np.stack([self.embed_now(text) for text in texts])

    def embed_now(self, text: str) -> NDArray[np.float32]:
        vector = np.full(WIDTH, 1e-6, dtype=np.float32)
        for word in terms(text):
            vector[hashlib.sha256(word.encode()).digest()[0]] += 1
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)
