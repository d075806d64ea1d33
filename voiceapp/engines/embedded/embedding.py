"""Text to vectors with MiniLM-L6, on onnxruntime, inside this process. English; 384 dimensions.

The model reads 256 tokens; longer texts are read through windows that overlap.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime as ort

from voiceapp.engines.embedded.windows import Reading, Vectors, Window, unit
from voiceapp.engines.models import tokens, weights
from voiceapp.engines.models.lanes import lanes

DIMENSIONS = 384
WINDOW_TOKENS = 256
"""Tokens that the model was trained to read, the two marks at its ends included."""
WINDOW_CHARS = 16 * WINDOW_TOKENS
"""Certainly more than a window holds."""
CLS, SEP = 101, 102
"""The marks at the ends of a text, in BERT's vocabulary."""

MODEL_FILE = "minilm/model_int8.onnx"

_READING = Reading(WINDOW_TOKENS, overlap=32, marks=(CLS, SEP), windows_per_thread=2, dimensions=DIMENSIONS)


class MiniLM:
    """Texts to unit vectors. Its files are loaded when first used, in a lane."""

    dimensions = DIMENSIONS

    @property
    def is_present(self) -> bool:
        """Return whether its files are on this machine."""
        return all(weights.path(name).is_file() for name in (MODEL_FILE, tokens.TOKENIZER_FILE))

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape [len(texts), 384], in the batch lane; a long list lets others in between its batches.

        Raises:
            EngineUnavailable: if the weights are missing or the lane is full.
        """
        counted = await lanes().batch.run(tokens.count_now, texts)
        return await self.embed_tokens([text.ids for text in counted])

    async def embed_tokens(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """The same for texts that were tokenized before (without the marks at their ends).

        Cancelling ends the work after the batch that runs.
        """
        return await _READING.vectors(texts, _run)

    def embed_now(self, text: str) -> Vectors:
        """The unit vector of one short text, shape [384], for a caller that is in a lane. Reads one window of it."""
        ids = tokens.tokenizer().encode(text[:WINDOW_CHARS], add_special_tokens=False).ids
        return unit(_run(_READING.windows([ids])[0]))

    async def warm(self) -> None:
        """Load the model, so that the first question does not wait for it."""
        await lanes().reply.run(self.embed_now, "ready")


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
    """The tokenizer and the model, loaded once.

    Raises:
        EngineUnavailable: if the weights are missing.
    """
    with _loading:
        tokens.tokenizer()
        return _load(weights.require(MODEL_FILE))


def _run(window: Window) -> Vectors:
    ids = np.array([window.ids], dtype=np.int64)
    vector: Vectors = _loaded().session.run(["embedding"], {"ids": ids, "mask": np.ones_like(ids)})[0][0]
    return vector
