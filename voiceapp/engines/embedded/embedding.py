"""Text to vectors with MiniLM-L6, on onnxruntime, inside this process. English; 384 dimensions.

The model reads 256 tokens. Longer texts are read through windows that overlap, and their vectors are averaged by
length. Each window is a run of its own: several in one tensor were measured to be no faster, and, as int8 scales are
taken over a tensor, would make the vector of a text depend on its neighbours.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime as ort
from django.conf import settings
from numpy.typing import NDArray

from voiceapp.engines import tokens
from voiceapp.engines.embedded import weights
from voiceapp.engines.lanes import lanes

DIMENSIONS = 384
WINDOW_TOKENS = 256
"""What the model was trained to read, the two marks at its ends included."""
OVERLAP_TOKENS = 32
WINDOWS_PER_THREAD = 2
"""In a batch: computed (in some 50 ms) before others get their turn, and before a caller who left is noticed."""

CLS, SEP = 101, 102
"""The marks at the ends of a text, in BERT's vocabulary."""

MODEL_FILE = "minilm/model_int8.onnx"

Vectors = NDArray[np.float32]


class MiniLM:
    """Texts to unit vectors. Its files are loaded when first used, in a lane."""

    dimensions = DIMENSIONS

    @property
    def is_present(self) -> bool:
        """Whether its files are on this machine."""
        return all(weights.path(name).is_file() for name in (MODEL_FILE, tokens.TOKENIZER_FILE))

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape [len(texts), 384], in the batch lane; a long list lets others in between its batches.

        Raises EngineUnavailable when the weights are missing or the lane is full.
        """
        counted = await lanes().batch.run(tokens.count_now, texts)
        return await self.embed_tokens([text.ids for text in counted])

    async def embed_tokens(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """The same for texts that were tokenized before (without the marks at their ends).

        Cancelling ends the work after the batch that runs.
        """
        windows = _windows(texts)
        totals = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        size = WINDOWS_PER_THREAD * settings.EMBEDDING_THREADS
        for start in range(0, len(windows), size):
            batch = windows[start : start + size]
            for window, vector in zip(batch, await lanes().batch.run(_run_batch, batch), strict=True):
                totals[window.text] += vector * len(window.ids)
        return unit(totals)

    def embed_now(self, text: str) -> Vectors:
        """The unit vector of one short text, shape [384], for a caller that is in a lane. Reads one window of it."""
        ids = tokens.tokenizer().encode(text, add_special_tokens=False).ids
        return unit(_run(_windows([ids])[0]))

    async def warm(self) -> None:
        """Load the model, so that the first question does not wait for it."""
        await lanes().speak.run(self.embed_now, "ready")


class _Loaded:
    """The files of the model, read once in a process however many embedders there are."""

    def __init__(self, model: Path) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # lanes are the threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = ort.InferenceSession(
            str(model),
            options,
            providers=["CPUExecutionProvider"],
            # The fused operator is eight times slower than the two it replaces: 20 % of the whole model (1.31.1).
            disabled_optimizers=["SkipLayerNormFusion"],
        )


_loading = threading.Lock()
_load = cache(_Loaded)


def _loaded() -> _Loaded:
    """Raises EngineUnavailable when the weights are missing."""
    with _loading:
        tokens.tokenizer()
        return _load(weights.require(MODEL_FILE))


def _windows(texts: Sequence[Sequence[int]]) -> list[_Window]:
    room = WINDOW_TOKENS - 2
    return [
        _Window(number, [CLS, *ids[start : start + room], SEP])
        for number, ids in enumerate(texts)
        for start in range(0, max(1, len(ids) - OVERLAP_TOKENS), room - OVERLAP_TOKENS)
    ]


def _run_batch(batch: Sequence[_Window]) -> list[Vectors]:
    return list(_beside().map(_run, batch))


@cache
def _beside() -> ThreadPoolExecutor:
    """The threads that share a batch. They are started from the batch lane, and so have its low priority."""
    return ThreadPoolExecutor(settings.EMBEDDING_THREADS, thread_name_prefix="embedding")


def _run(window: _Window) -> Vectors:
    ids = np.array([window.ids], dtype=np.int64)
    vector: Vectors = _loaded().session.run(["embedding"], {"ids": ids, "mask": np.ones_like(ids)})[0][0]
    return vector


class _Window:
    """A stretch of one text that the model reads at once."""

    __slots__ = ("ids", "text")

    def __init__(self, text: int, ids: list[int]) -> None:
        self.text = text
        self.ids = ids


def unit(vectors: Vectors) -> Vectors:
    """Rows of length 1; a row of zeros stays."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = vectors / np.maximum(norms, 1e-12)
    return scaled
