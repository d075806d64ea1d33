"""The Moonshine tiny-en network on ONNX Runtime: one stretch of speech in, tokens and their probabilities out.

Its makers' library is five to eight times slower and cuts segments its own way, so only the weights are used. Where to
cut, and what to believe, is `asr.py`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.embedded.terms import Terms
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
BEAMS = 4
CHOICES = 32
"""Tokens that each beam may go on with."""

Feed = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Decoded:
    text: str
    log_probability: float
    """Mean over the tokens, the end token included."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Beam:
    tokens: tuple[int, ...]
    log_probability: float
    score: float
    """The same with the bonus of the terms."""

    @property
    def is_ended(self) -> bool:
        return self.tokens[-1:] == (END_TOKEN,)


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
        self._rows = [*self._caches, "encoder_hidden_states", "encoder_attention_mask"]

    def decode(self, audio: Samples, stop: threading.Event, terms: Terms | None = None) -> Decoded:
        """The likeliest words in `audio` (at most some 30 s): greedily, or with `terms`, which are preferred, by beams.

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
        limit = max(MIN_TOKENS, math.ceil(len(audio) / ENGINE_SAMPLE_RATE_HZ * TOKENS_PER_SECOND))
        return self._by_beams(feed, limit, stop, terms) if terms else self._greedily(feed, limit, stop)

    def _greedily(self, feed: Feed, limit: int, stop: threading.Event) -> Decoded:
        tokens: list[int] = []
        log_probability = 0.0
        for _ in range(limit):
            scores = self._step(feed, stop)[0]
            token = int(scores.argmax())
            log_probability -= float(np.log(np.exp(scores - scores[token]).sum()))
            tokens.append(token)
            if token == END_TOKEN:
                break
            feed["input_ids"] = np.array([[token]], dtype=np.int64)
        return Decoded(self._text(tokens), log_probability / len(tokens), len(tokens))

    def _by_beams(self, feed: Feed, limit: int, stop: threading.Event, terms: Terms) -> Decoded:
        """The beams of a step are read as one batch; those that have ended stay until a better one has."""
        beams = [Beam((), 0.0, 0.0)]
        for _ in range(limit):
            live = [beam for beam in beams if not beam.is_ended]
            found = [beam for beam in beams if beam.is_ended]
            scores = self._step(feed, stop)
            scores -= scores.max(axis=1, keepdims=True)
            scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
            parents: dict[tuple[int, ...], int] = {}
            for row, beam in enumerate(live):
                for token in np.argpartition(scores[row], -CHOICES)[-CHOICES:]:
                    tokens = (*beam.tokens, int(token))
                    log_probability = beam.log_probability + float(scores[row, token])
                    parents[tokens] = row
                    found.append(Beam(tokens, log_probability, log_probability + terms.bonus(self._text(tokens))))
            beams = sorted(found, key=lambda beam: beam.score, reverse=True)[:BEAMS]
            if beams[0].is_ended:
                break
            live = [beam for beam in beams if not beam.is_ended]
            rows = [parents[beam.tokens] for beam in live]
            feed.update((name, feed[name][rows]) for name in self._rows)
            feed["input_ids"] = np.array([[beam.tokens[-1]] for beam in live], dtype=np.int64)
        best = beams[0]
        return Decoded(self._text(best.tokens), best.log_probability / len(best.tokens), len(best.tokens))

    def _step(self, feed: Feed, stop: threading.Event) -> Samples:
        """The scores of the next token, a row for each beam; `feed` takes the caches.

        The first step fills the encoder's, which then stay.
        """
        if stop.is_set():
            raise Stopped
        wanted = self._own_caches if feed["use_cache_branch"][0] else self._caches
        outputs = [name.replace("past_key_values", "present") for name in wanted]
        logits, *caches = self._decoder.run(["logits", *outputs], feed)
        feed.update(zip(wanted, caches, strict=True))
        feed["use_cache_branch"] = np.array([True])
        scores: Samples = logits[:, -1]
        return scores

    def _text(self, tokens: Sequence[int]) -> str:
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
