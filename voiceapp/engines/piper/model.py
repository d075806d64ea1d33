"""Piper models: what an `.onnx.json` says, and sound from phonemes."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voiceapp.engines.interfaces import Samples
from voiceapp.engines.models import onnx_sessions
from voiceapp.engines.voices.neural import VoiceUnusable
from voiceapp.errors import EngineUnavailable

BEGIN, END, PAD = "^", "$", "_"
MIN_LENGTH, MAX_LENGTH = 0.4, 2.5
"""Range of rates at which a model still speaks clearly, as a factor of its usual length."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    file: Path
    sample_rate_hz: int
    language: str
    """ISO 639-1 code with a region, such as `en-US`."""
    espeak_voice: str
    """espeak-ng voice whose phonemes it learned; empty for a model that reads letters."""
    noise: float
    length: float
    noise_of_lengths: float
    ids: Mapping[str, tuple[int, ...]]
    """By phoneme."""
    speakers: Mapping[str, int]
    """By name; empty where there is only one."""

    def ids_of(self, phonemes: str) -> list[int]:
        """Return the model's input; phonemes that it never learned are left out."""
        pad = self.ids[PAD]
        found = list(self.ids[BEGIN])
        for symbol in unicodedata.normalize("NFD", phonemes):
            if symbol in self.ids:
                found += (*self.ids[symbol], *pad)
        return [*found, *self.ids[END]]


def read_settings(file: Path) -> ModelSettings:
    """The settings of the model `file`.

    Raises:
        VoiceUnusable: if they are missing or cannot be read.
    """
    try:
        found = json.loads(file.with_name(f"{file.name}.json").read_text(encoding="utf-8"))
        return _settings(file, found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise VoiceUnusable(
            f"The voice {file.stem} cannot be read.", remedy=f"Look at {file.name}.json beside it: {error!r}."
        ) from error


def _settings(file: Path, found: dict[str, Any]) -> ModelSettings:
    kind = found.get("phoneme_type", "espeak")
    if kind not in ("espeak", "text"):
        raise ValueError(f"its phonemes are of the kind {kind!r}, which is not known")
    inference = found.get("inference", {})
    espeak_voice = str(found["espeak"]["voice"]) if kind == "espeak" else ""
    code = str(found.get("language", {}).get("code") or espeak_voice or file.stem)
    ids = {str(symbol): tuple(int(number) for number in numbers) for symbol, numbers in found["phoneme_id_map"].items()}
    if not ids.keys() >= {BEGIN, END, PAD}:
        raise ValueError("its phoneme_id_map has no beginning, end or pause")
    return ModelSettings(
        file=file,
        sample_rate_hz=int(found["audio"]["sample_rate"]),
        language=code.replace("_", "-"),
        espeak_voice=espeak_voice,
        noise=float(inference.get("noise_scale", 0.667)),
        length=float(inference.get("length_scale", 1.0)),
        noise_of_lengths=float(inference.get("noise_w", 0.8)),
        ids=ids,
        speakers={str(name): int(number) for name, number in (found.get("speaker_id_map") or {}).items()},
    )


def sound_of(model: ModelSettings, phonemes: str, *, rate: float, speaker: int = 0) -> Samples:
    """The sound of `phonemes` at the model's sample rate; `rate` 1.0 is its own pace. Blocks, the first time for about
    a second, in which it loads.

    Raises:
        VoiceUnusable: if the file does not load.
    """
    try:
        session = onnx_sessions.session_of(model.file)
    except EngineUnavailable as error:
        raise VoiceUnusable(error.message, remedy=error.remedy) from error
    ids = model.ids_of(phonemes)
    length = model.length * min(max(1 / rate, MIN_LENGTH), MAX_LENGTH)
    feed = {
        "input": np.array([ids], dtype=np.int64),
        "input_lengths": np.array([len(ids)], dtype=np.int64),
        "scales": np.array([model.noise, length, model.noise_of_lengths], dtype=np.float32),
    }
    if any(wanted.name == "sid" for wanted in session.get_inputs()):
        feed["sid"] = np.array([speaker], dtype=np.int64)
    sound: Samples = session.run(None, feed)[0]
    return sound.reshape(-1)
