"""One Piper model: what its `.onnx.json` says, and sound from phonemes."""

from __future__ import annotations

import json
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.interfaces import Samples
from voiceapp.engines.models import onnx_sessions
from voiceapp.engines.piper.sound import Loudness
from voiceapp.errors import EngineUnavailable

ENCODER, DECODER = ".encoder.onnx", ".decoder.onnx"
"""Endings of the halves of a model in place of `.onnx`."""
BEGIN, END, PAD = "^", "$", "_"
MIN_LENGTH, MAX_LENGTH = 0.4, 2.5
"""Range of rates at which a model still speaks clearly, as a factor of its usual length."""


FIRST_FRAMES = 24
MOST_FRAMES = 96
"""A part of the sound, in the model's latent frames: of 12 ms in a voice of 22 kHz. The first is short, to be heard
soon; each is twice as long as the one before, for its margins are made for nothing."""
MARGIN_FRAMES, WIDE_MARGIN_FRAMES = 10, 16
"""Frames that a decoder sees on both sides: with so many a part is what it would be in the whole (tested).
Models of high quality look further; which of the two margins a decoder needs, it shows itself."""
SAME = 1e-3
"""Difference of samples in [-1, 1] at the edges of parts that shows that the margin is too small."""


class VoiceUnusable(EngineUnavailable):
    """A voice's files are missing, damaged or of a kind that is not known."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Content of the `.onnx.json` beside a model."""

    file: Path
    """The model; beside it, or in its place, its two halves (see `streaming_export`)."""
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


class PiperModel:
    """A loaded model. Its methods block."""

    def __init__(self, settings: ModelSettings) -> None:
        """Blocks for about a second.

        Raises:
            VoiceUnusable: if the files do not load.
        """
        self.settings = settings
        encoder, decoder = (settings.file.with_suffix(ending) for ending in (ENCODER, DECODER))
        try:
            if decoder.is_file():
                self._encoder = onnx_sessions.session_of(encoder)
                self._decoder = onnx_sessions.session_of(decoder)
            else:
                self._encoder = onnx_sessions.session_of(settings.file)
                self._decoder = None
        except EngineUnavailable as error:
            raise VoiceUnusable(error.message, remedy=error.remedy) from error
        inputs = self._decoder.get_inputs() if self._decoder else []
        self._decoder_inputs = [wanted.name for wanted in inputs]
        self._wants_speaker = any(wanted.name == "sid" for wanted in self._encoder.get_inputs())
        self._loudness: dict[int, Loudness] = defaultdict(Loudness)
        self.margin: int | None = None
        """Frames on both sides that its decoder looks at; known from the first speech on that is long enough."""

    def loudness(self, speaker: int) -> Loudness:
        """Return the loudness of a speaker of this model, as far as it was heard."""
        return self._loudness[speaker]

    def speak(self, phonemes: str, *, rate: float, speaker: int = 0) -> Iterator[Samples]:
        """The sound of `phonemes` at the settings' sample rate, in parts where the model can; each `next` blocks while
        one is made. `rate` 1.0 is the voice's own pace.
        """
        ids = self.settings.ids_of(phonemes)
        length = self.settings.length * min(max(1 / rate, MIN_LENGTH), MAX_LENGTH)
        feed = {
            "input": np.array([ids], dtype=np.int64),
            "input_lengths": np.array([len(ids)], dtype=np.int64),
            "scales": np.array([self.settings.noise, length, self.settings.noise_of_lengths], dtype=np.float32),
        }
        if self._wants_speaker:
            feed["sid"] = np.array([speaker], dtype=np.int64)
        made = self._encoder.run(None, feed)
        if self._decoder is None:
            yield made[0].reshape(-1)
            return
        frames_name, *other_names = self._decoder_inputs
        frames, *others = made
        of_speaker = dict(zip(other_names, others, strict=True))
        begin, count, size = 0, frames.shape[2], FIRST_FRAMES
        while begin < count:
            end = min(begin + size, count)
            margin = self.margin or WIDE_MARGIN_FRAMES
            first, last = max(0, begin - margin), min(count, end + margin)
            sound = self._decode({frames_name: frames[:, :, first:last], **of_speaker})
            per_frame = len(sound) // (last - first)
            yield sound[(begin - first) * per_frame : (end - first) * per_frame]
            begin, size = end, min(2 * size, MOST_FRAMES)
        if self.margin is None and count >= 2 * WIDE_MARGIN_FRAMES:
            self.margin = self._find_margin({frames_name: frames[:, :, : 2 * WIDE_MARGIN_FRAMES], **of_speaker})

    def _find_margin(self, feed: Mapping[str, NDArray[Any]]) -> int:
        """The least margin with which the beginning of `feed` is what it is in the whole; blocks for 40 ms."""
        frames_name = self._decoder_inputs[0]
        frames = feed[frames_name]
        whole = self._decode(feed)
        kept = len(whole) // frames.shape[2] * WIDE_MARGIN_FRAMES
        part = self._decode({**feed, frames_name: frames[:, :, : WIDE_MARGIN_FRAMES + MARGIN_FRAMES]})
        is_same = float(np.abs(part[:kept] - whole[:kept]).max()) < SAME
        return MARGIN_FRAMES if is_same else WIDE_MARGIN_FRAMES

    def _decode(self, feed: Mapping[str, NDArray[Any]]) -> Samples:
        assert self._decoder is not None
        sound: Samples = self._decoder.run(None, feed)[0]
        return sound.reshape(-1)


_loading = threading.Lock()
_loaded: dict[Path, PiperModel] = {}


def model_of(settings: ModelSettings) -> PiperModel:
    """The model of a file, loaded once.

    Raises:
        VoiceUnusable: if the file does not load.
    """
    if (model := _loaded.get(settings.file)) is None:
        with _loading:  # who speaks with another voice does not wait for it
            if (model := _loaded.get(settings.file)) is None:
                model = _loaded[settings.file] = PiperModel(read_settings(settings.file))
    return model
