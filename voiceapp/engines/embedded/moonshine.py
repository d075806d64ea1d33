"""The Moonshine tiny-en network on ONNX Runtime: one stretch of speech in, tokens and their probabilities out.

Its makers' library is five to eight times slower and cuts segments its own way, so only the weights are used. Where to
cut, and what to believe, is `asr.py`.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import numpy as np

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.engines.models import onnx_sessions, weights

ENCODER = "moonshine-tiny-en/encoder_model.ort"
DECODER = "moonshine-tiny-en/decoder_model_merged.ort"
TOKENIZER = "moonshine-tiny-en/tokenizer.bin"

START_TOKEN = 1
END_TOKEN = 2
FIRST_CONTROL_TOKEN_AT_END = b"<<ST_"
LAYERS = 6
HEADS = 8
HEAD_SIZE = 36
TOKENS_PER_SECOND = 6.5
"""Speech has fewer; the makers stop there, since beyond it the network repeats itself."""
MIN_TOKENS = 8
"""Room for a word or two in a stretch of half a second."""


@dataclass(frozen=True, slots=True)
class Decoded:
    text: str
    log_probability: float
    """Mean over the tokens, the end token included."""
    tokens: int


class Stopped(Exception):
    """Nobody waits for the words any more."""


class MoonshineModel:
    """Weights and vocabulary. `decode` blocks and may run in several threads at once."""

    def __init__(self) -> None:
        """Load the model.

        Raises:
            EngineUnavailable: if its files are missing.
        """
        self._encoder = onnx_sessions.session(ENCODER)
        self._decoder = onnx_sessions.session(DECODER)
        self._pieces = _pieces(weights.require(TOKENIZER).read_bytes())
        self._caches = [
            f"past_key_values.{layer}.{part}.{kind}"
            for layer in range(LAYERS)
            for part in ("decoder", "encoder")
            for kind in ("key", "value")
        ]
        self._own_caches = [name for name in self._caches if ".decoder." in name]

    def decode(self, audio: Samples, stop: threading.Event) -> Decoded:
        """The likeliest words in `audio` (at most some 30 s), greedily.

        Raises:
            Stopped: soon after `stop` is set.
        """
        # The mask of the decoder, too, is at sample length: it is strided inside.
        mask = np.ones((1, len(audio)), dtype=np.int64)
        (hidden,) = self._encoder.run(None, {"input_values": audio[None], "attention_mask": mask})
        empty = np.zeros((1, HEADS, 0, HEAD_SIZE), dtype=np.float32)
        feed = {
            "input_ids": np.array([[START_TOKEN]], dtype=np.int64),
            "encoder_hidden_states": hidden,
            "encoder_attention_mask": mask,
            "use_cache_branch": np.array([False]),
            **dict.fromkeys(self._caches, empty),
        }
        wanted = self._caches  # the first step fills the encoder's caches, which then stay
        tokens: list[int] = []
        log_probability = 0.0
        limit = max(MIN_TOKENS, math.ceil(len(audio) / ENGINE_SAMPLE_RATE_HZ * TOKENS_PER_SECOND))
        for _ in range(limit):
            if stop.is_set():
                raise Stopped
            outputs = [name.replace("past_key_values", "present") for name in wanted]
            logits, *caches = self._decoder.run(["logits", *outputs], feed)
            scores = logits[0, -1]
            token = int(scores.argmax())
            log_probability -= float(np.log(np.exp(scores - scores[token]).sum()))
            tokens.append(token)
            if token == END_TOKEN:
                break
            feed.update(zip(wanted, caches, strict=True))
            feed["input_ids"] = np.array([[token]], dtype=np.int64)
            feed["use_cache_branch"] = np.array([True])
            wanted = self._own_caches
        return Decoded(self._text(tokens), log_probability / len(tokens), len(tokens))

    def _text(self, tokens: list[int]) -> str:
        joined = b"".join(self._pieces[token] for token in tokens)
        return joined.decode("utf-8", "ignore").replace("▁", " ").strip()


def _pieces(packed: bytes) -> list[bytes]:
    """The vocabulary: each piece behind its length, one byte, or two with the low seven bits first.

    Control tokens become empty: the three at the front and the numbered ones at the end.
    """
    pieces: list[bytes] = []
    at = 0
    while at < len(packed):
        length = packed[at]
        at += 1
        if length >= 0x80:
            length = (length & 0x7F) | packed[at] << 7
            at += 1
        pieces.append(packed[at : at + length])
        at += length
    return [
        b"" if index <= END_TOKEN or piece.startswith(FIRST_CONTROL_TOKEN_AT_END) else piece
        for index, piece in enumerate(pieces)
    ]
