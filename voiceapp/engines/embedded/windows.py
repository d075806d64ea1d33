"""Texts read through windows: what both encoders share.

Each window is a run of its own: several in one tensor were measured to be no faster, and, as int8 scales are taken over
a tensor, would make the vector of a text depend on its neighbours. The vectors of a text's windows are averaged by
length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from voiceapp.engines.models.lanes import lanes

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of one text that a model reads at once."""

    text: int
    ids: list[int]


@dataclass(frozen=True, slots=True)
class Reading:
    """Windows of a model."""

    tokens: int
    """Tokens of a window, the marks at its ends included."""
    overlap: int
    marks: tuple[int, int]
    """At the ends of each window."""
    windows_per_thread: int
    """In a batch: computed (in some 50 ms) before others get their turn, and before a caller who left is noticed."""
    dimensions: int

    def windows(self, texts: Sequence[Sequence[int]]) -> list[Window]:
        """Those of all texts, in their order; one for a text without tokens."""
        first, last = self.marks
        room = self.tokens - 2
        return [
            Window(number, [first, *ids[start : start + room], last])
            for number, ids in enumerate(texts)
            for start in range(0, max(1, len(ids) - self.overlap), room - self.overlap)
        ]

    async def vectors(self, texts: Sequence[Sequence[int]], run: Callable[[Window], Vectors]) -> Vectors:
        """Unit vectors, shape [len(texts), dimensions], with `run` called in the batch lane.

        Cancelling ends the work after the batch that runs.

        Raises:
            EngineUnavailable: if the lane is full.
        """
        windows = self.windows(texts)
        totals = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        size = self.windows_per_thread * settings.EMBEDDING_THREADS
        for start in range(0, len(windows), size):
            batch = windows[start : start + size]
            for window, vector in zip(batch, await lanes().batch.run(_run_batch, run, batch), strict=True):
                totals[window.text] += vector * len(window.ids)
        return unit(totals)


def _run_batch(run: Callable[[Window], Vectors], batch: Sequence[Window]) -> list[Vectors]:
    return list(_beside().map(run, batch))


@cache
def _beside() -> ThreadPoolExecutor:
    """The threads that share a batch. They are started from the batch lane, and so have its low priority."""
    return ThreadPoolExecutor(settings.EMBEDDING_THREADS, thread_name_prefix="embedding")


def unit(vectors: Vectors) -> Vectors:
    """Rows of length 1; a row of zeros stays."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = vectors / np.maximum(norms, 1e-12)
    return scaled
