"""Text to vectors with the Universal Sentence Encoder, inside this process. Sixteen languages; 512 dimensions.

A text and its translation have vectors that are near each other. The model reads texts of any length, but long ones are
found more often when they are read through windows. Its files are made by `use_build`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from voiceapp.engines.embedded.windows import Reading, Vectors, Window
from voiceapp.engines.models import onnx_sessions, weights
from voiceapp.engines.models.lanes import lanes

DIMENSIONS = 512
MODEL_FILE = "use-multilingual/encoder.onnx"
TOKENIZER_FILE = "use-multilingual/tokenizer.json"
START, END = 1, 2
"""The marks at the ends of a text."""
MAX_PIECES = 16_384
MAX_CHARS = 8 * MAX_PIECES
"""Length of one text. Operations count in the other model's tokens, up to 8,192 a text; unknown words are long."""

_READING = Reading(tokens=98, overlap=16, marks=(START, END), windows_per_thread=8, dimensions=DIMENSIONS)


class UniversalSentenceEncoder:
    """Texts to unit vectors. Its files are loaded when first used, in a lane."""

    dimensions = DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape [len(texts), 512], in the batch lane; a long list lets others in between its batches.

        Cancelling ends the work after the batch that runs.

        Raises:
            EngineUnavailable: if the weights are missing or the lane is full.
        """
        pieces = [await lanes().batch.run(_pieces, text) for text in texts]
        return await _READING.vectors(pieces, _run)


def _pieces(text: str) -> Sequence[int]:
    ids: Sequence[int] = _tokenizer().encode(text[:MAX_CHARS], add_special_tokens=False).ids
    return ids[:MAX_PIECES]


@cache
def _tokenizer() -> Any:
    """Blocks for about half a second when first called.

    Raises:
        EngineUnavailable: if its file is missing.
    """
    return Tokenizer.from_file(str(weights.require(TOKENIZER_FILE)))


def _run(window: Window) -> Vectors:
    ids = np.array(window.ids, dtype=np.int64)
    vector: Vectors = onnx_sessions.session(MODEL_FILE).run(["embedding"], {"ids": ids})[0][0]
    return vector
