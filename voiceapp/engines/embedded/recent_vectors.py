"""Vectors of texts that were read lately, so that a list that is ranked again, for another query, is not read again."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class RecentVectors:
    """By hash of the text, the texts themselves are not kept. For the event loop only."""

    def __init__(self, *, capacity: int) -> None:
        """`capacity` vectors are kept: those used last."""
        self._capacity = capacity
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()

    @staticmethod
    def key(text: str) -> bytes:
        return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()

    def get(self, key: bytes) -> Vector | None:
        vector = self._vectors.get(key)
        if vector is not None:
            self._vectors.move_to_end(key)
        return vector

    def put(self, key: bytes, vector: Vector) -> None:
        self._vectors[key] = vector.copy()  # a row would keep alive all vectors of its request
        self._vectors.move_to_end(key)
        while len(self._vectors) > self._capacity:
            self._vectors.popitem(last=False)

    def __len__(self) -> int:
        return len(self._vectors)
