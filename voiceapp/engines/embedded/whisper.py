"""The Whisper network on CTranslate2: one stretch of speech in any language in, its words or English ones out.

It was trained on windows of 30 s. Here the window is 10 s, or the sound and a second more: the words are the same, and
the encoder, which is most of the work, takes a fifth of the time. In 5 s it repeats itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers.decoders import ByteLevel

from voiceapp.engines.embedded.mel import log_mel
from voiceapp.engines.embedded.moonshine import Decoded
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.errors import EngineUnavailable

WINDOW_SAMPLES = 10 * ENGINE_SAMPLE_RATE_HZ
MARGIN_SAMPLES = ENGINE_SAMPLE_RATE_HZ
MAX_WINDOW_SAMPLES = 30 * ENGINE_SAMPLE_RATE_HZ
MAX_TOKENS_PER_SECOND = 35
"""Languages without letters of their own in the vocabulary take many: Hindi 13, Telugu 25, Georgian 31."""
MIN_TOKENS = 16
MAX_TOKENS = 224
"""Longest text that it was trained to write."""
MIN_LOG_PROBABILITY = -1.0
"""Mean per token, below which it guesses. Measured: speech -0.05 to -0.6, noise -1.0 to -3.3."""
NO_SPEECH = 0.6
MIN_LOG_PROBABILITY_IN_SILENCE = -0.5
"""Least mean per token where silence is at least `NO_SPEECH` likely: silence is read as "Thank you." with -0.7."""
DAMAGED = "The recognizer of other languages cannot be loaded."


class WhisperModel:
    """Weights and vocabulary. Its methods block and may run in several threads at once."""

    def __init__(self, folder: Path, *, threads: int) -> None:
        """Load the model, quantized to eight bits; it takes 0.5 s. `threads` stretches are read at once, each on one.

        Raises:
            EngineUnavailable: if the folder holds no multilingual Whisper in CTranslate2's form.
        """
        import ctranslate2

        try:
            self._network = ctranslate2.models.Whisper(
                str(folder), device="cpu", compute_type="int8", inter_threads=threads, intra_threads=1
            )
        except RuntimeError as error:
            raise EngineUnavailable(DAMAGED, remedy=f"{folder}: {error}") from error
        if not self._network.is_multilingual:
            raise EngineUnavailable(DAMAGED, remedy=f"The Whisper in {folder} knows English only.")
        self._text = ByteLevel()
        self._view = ctranslate2.StorageView.from_array

    def encode(self, audio: Samples) -> Any:
        """Encode at most 29 s of sound, for `language` and `decode`."""
        window = np.zeros(min(max(WINDOW_SAMPLES, len(audio) + MARGIN_SAMPLES), MAX_WINDOW_SAMPLES), dtype=np.float32)
        window[: len(audio)] = audio
        picture = np.ascontiguousarray(log_mel(window, bands=self._network.n_mels)[None])
        return self._network.encode(self._view(picture))

    def language(self, encoded: Any, among: Sequence[str]) -> tuple[str, float]:
        """The likeliest of some languages (ISO 639-1), and its probability as one of them."""
        (found,) = self._network.detect_language(encoded)
        likely = {mark.strip("<|>"): probability for mark, probability in found}
        best = max(among, key=lambda code: likely.get(code, 0.0))
        return best, likely.get(best, 0.0) / max(sum(likely.get(code, 0.0) for code in among), 1e-9)

    def decode(self, encoded: Any, seconds: float, language: str, *, translates: bool = False) -> Decoded | None:
        """Decode greedily, in the language spoken or (`translates`) into English; no words where there is no speech.

        Returns None where they would be too many.
        """
        task = "translate" if translates else "transcribe"
        marks = ("<|startoftranscript|>", f"<|{language}|>", f"<|{task}|>", "<|notimestamps|>")
        limit = min(max(MIN_TOKENS, math.ceil(seconds * MAX_TOKENS_PER_SECOND)), MAX_TOKENS)
        # CTranslate2 keeps half of `max_length` for a text before.
        options = {"max_length": 2 * limit, "return_scores": True, "return_no_speech_prob": True}
        (found,) = self._network.generate(encoded, [list(marks)], beam_size=1, **options)
        tokens = found.sequences_ids[0]
        # The score leaves the end token out of the count, but not out of the sum.
        log_probability = found.scores[0] * len(tokens) / (len(tokens) + 1)
        least = MIN_LOG_PROBABILITY if found.no_speech_prob < NO_SPEECH else MIN_LOG_PROBABILITY_IN_SILENCE
        if log_probability < least:
            return Decoded("", log_probability, len(tokens) + 1)
        if len(tokens) >= limit:
            return None
        said = [token for token in found.sequences[0] if not token.startswith("<|")]
        return Decoded(self._text.decode(said).strip(), log_probability, len(tokens) + 1)
