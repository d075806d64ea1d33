"""Text to vectors with MiniLM-L6, on onnxruntime, inside this process. English; 384 dimensions.

The model reads 256 tokens. Longer texts are read through windows that overlap, and their vectors are averaged by
length. Batches are small and sorted by length: larger ones were measured to be slower, because padding is computed too.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from tokenizers import Tokenizer

from voiceapp.engines.embedded import weights
from voiceapp.engines.lanes import lanes

DIMENSIONS = 384
WINDOW_TOKENS = 256
"""What the model was trained to read, the two marks at its ends included."""
OVERLAP_TOKENS = 32
BATCH_TEXTS = 4

CLS, SEP = 101, 102
"""The marks at the ends of a text, in BERT's vocabulary."""

MODEL_FILE = "minilm/model_int8.onnx"
TOKENIZER_FILE = "minilm/tokenizer.json"

Vectors = NDArray[np.float32]


class MiniLM:
    """An `Embedder`. Its files are loaded when first used, in a lane."""

    dimensions = DIMENSIONS

    @property
    def is_present(self) -> bool:
        """Whether its files are on this machine."""
        return all(weights.path(name).is_file() for name in (MODEL_FILE, TOKENIZER_FILE))

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape [len(texts), 384], in the batch lane; a long list lets others in between its batches.

        Raises EngineUnavailable when the weights are missing or the lane is full.
        """
        windows = await lanes().batch.run(self._windows, texts)
        windows.sort(key=lambda window: len(window.ids))
        totals = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for start in range(0, len(windows), BATCH_TEXTS):
            batch = windows[start : start + BATCH_TEXTS]
            for window, vector in zip(batch, await lanes().batch.run(self._run, batch), strict=True):
                totals[window.text] += vector * len(window.ids)
        return _unit(totals)

    def embed_now(self, text: str) -> Vectors:
        """The unit vector of one short text, shape [384], for a caller that is in a lane. Reads one window of it."""
        vector: Vectors = _unit(self._run(self._windows([text])[:1]))[0]
        return vector

    async def warm(self) -> None:
        """Load the model, so that the first question does not wait for it."""
        await lanes().speak.run(self.embed_now, "ready")

    def _windows(self, texts: Sequence[str]) -> list[_Window]:
        tokenizer = _loaded().tokenizer
        room = WINDOW_TOKENS - 2
        windows = []
        for number, encoding in enumerate(tokenizer.encode_batch(list(texts), add_special_tokens=False)):
            ids = encoding.ids
            for start in range(0, max(1, len(ids) - OVERLAP_TOKENS), room - OVERLAP_TOKENS):
                windows.append(_Window(number, [CLS, *ids[start : start + room], SEP]))
        return windows

    def _run(self, batch: Sequence[_Window]) -> Vectors:
        longest = max(len(window.ids) for window in batch)
        ids = np.zeros((len(batch), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(batch):
            ids[row, : len(window.ids)] = window.ids
            mask[row, : len(window.ids)] = 1
        vectors: Vectors = _loaded().session.run(["embedding"], {"ids": ids, "mask": mask})[0]
        return vectors


class _Loaded:
    """The files of the model, read once in a process however many embedders there are."""

    def __init__(self, model: Path, tokenizer: Path) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # lanes are the threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.tokenizer: Any = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_truncation()  # the file asks for 128 tokens, cut and padded
        self.tokenizer.no_padding()


_loading = threading.Lock()
_load = cache(_Loaded)


def _loaded() -> _Loaded:
    """Raises EngineUnavailable when the weights are missing."""
    with _loading:
        return _load(weights.require(MODEL_FILE), weights.require(TOKENIZER_FILE))


class _Window:
    """A stretch of one text that the model reads at once."""

    __slots__ = ("ids", "text")

    def __init__(self, text: int, ids: list[int]) -> None:
        self.text = text
        self.ids = ids


def _unit(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Vectors = vectors / np.maximum(norms, 1e-12)
    return unit
