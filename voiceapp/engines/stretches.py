"""Where somebody speaks in a recording, as voice detection hears it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from voiceapp.engines.embedded import vad
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, VAD_FRAME_SAMPLES, Samples

BEGINS, ENDS = 0.5, 0.35
"""Probabilities at which speech begins and ends: the second is lower, so that a faint syllable ends nothing."""
PAUSE_FRAMES = 16
"""So long a silence (0.5 s) divides two stretches."""
PADDING_FRAMES = 6
"""About 0.2 s before and after, where quiet consonants hide."""
MAX_FRAMES = 20 * ENGINE_SAMPLE_RATE_HZ // VAD_FRAME_SAMPLES
"""A longer stretch is divided: recognition loses itself in it, and a subtitle nobody reads."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Speech from one sample of a recording up to, not including, another."""

    start: int
    end: int

    @property
    def start_s(self) -> float:
        return self.start / ENGINE_SAMPLE_RATE_HZ

    @property
    def end_s(self) -> float:
        return self.end / ENGINE_SAMPLE_RATE_HZ


def speech_in(
    audio: Samples, stop: threading.Event, *, detector: Callable[[], vad.SileroDetector] = vad.detector
) -> list[Stretch]:
    """The stretches of speech, in order; of about 3 ms of work for a second of sound. Ends early when `stop` is set.

    Raises EngineUnavailable when the model for it is missing.
    """
    listening = detector()
    frames = range(0, len(audio) - VAD_FRAME_SAMPLES + 1, VAD_FRAME_SAMPLES)
    heard = (listening.probability(audio[at : at + VAD_FRAME_SAMPLES]) for at in frames if not stop.is_set())
    found: list[Stretch] = []
    for first, last in _frames_of_speech(heard):
        start = max(first - PADDING_FRAMES, 0) * VAD_FRAME_SAMPLES
        end = min((last + PADDING_FRAMES) * VAD_FRAME_SAMPLES, len(audio))
        found.append(Stretch(max(start, found[-1].end if found else 0), end))
    return found


def _frames_of_speech(heard: Iterable[float]) -> Iterator[tuple[int, int]]:
    """First frame of a stretch, and the one behind its last."""
    first: int | None = None
    last = 0
    for number, probability in enumerate(heard):
        if first is None:
            if probability >= BEGINS:
                first = number
        elif number - last > PAUSE_FRAMES or number - first >= MAX_FRAMES:
            yield first, last
            first = number if probability >= BEGINS else None
        if first is not None and probability >= ENDS:
            last = number + 1
    if first is not None:
        yield first, last
