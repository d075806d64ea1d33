"""Segments of speech in a recording, by voice detection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.interfaces import (
    ENGINE_SAMPLE_RATE_HZ,
    VAD_FRAME_SAMPLES,
    Samples,
    VoiceDetection,
    VoiceDetector,
)
from voiceapp.engines.models.providers import provider_of

BEGINS, ENDS = 0.5, 0.35
"""Probabilities at which speech begins and ends: the second is lower, so that a faint syllable ends nothing."""
PAUSE_FRAMES = 16
"""So long a silence (0.5 s) divides two segments."""
PADDING_FRAMES = 6
"""About 0.2 s before and after, where quiet consonants hide."""
MAX_FRAMES = 20 * ENGINE_SAMPLE_RATE_HZ // VAD_FRAME_SAMPLES
"""A longer segment is divided: recognition loses itself in it, and it is too long for a subtitle."""


@dataclass(frozen=True, slots=True, eq=False)
class SpeechSegment:
    """Speech, and where in the recording it is."""

    start: int
    """Number of its first sample."""
    samples: Samples

    @property
    def end(self) -> int:
        return self.start + len(self.samples)

    @property
    def start_s(self) -> float:
        return self.start / ENGINE_SAMPLE_RATE_HZ

    @property
    def end_s(self) -> float:
        return self.end / ENGINE_SAMPLE_RATE_HZ


class Segmenter:
    """Finds the segments of speech in a recording that comes piece by piece, and keeps no more of it than it needs."""

    def __init__(self, detector: Callable[[], VoiceDetector] | None = None) -> None:
        """By default with this server's voice detection.

        Raises:
            EngineUnavailable: if its model is missing.
        """
        self._detector = detector() if detector else _own_detector()
        self._kept: Samples = np.zeros(0, dtype=np.float32)
        self._kept_from = 0
        """Number of the first sample kept."""
        self._frames = 0
        """Frames heard so far."""
        self._first: int | None = None
        """Frame in which the segment at hand begins."""
        self._last = 0
        """The frame behind its last one with speech."""
        self._told = 0
        """End of the segment before: nothing is in two of them."""

    def feed(self, samples: Samples) -> list[SpeechSegment]:
        """The segments that ended in the next piece, in order; about 3 ms of work for a second of sound."""
        self._kept = np.concatenate([self._kept, samples])
        found = []
        end = self._kept_from + len(self._kept)
        while (self._frames + 1) * VAD_FRAME_SAMPLES <= end:
            at = self._frames * VAD_FRAME_SAMPLES - self._kept_from
            probability = self._detector.probability(self._kept[at : at + VAD_FRAME_SAMPLES])
            found += self._hear(probability)
            self._frames += 1
        needed = (self._frames if self._first is None else self._first) - PADDING_FRAMES
        unneeded = max(needed * VAD_FRAME_SAMPLES - self._kept_from, 0)
        self._kept, self._kept_from = self._kept[unneeded:], self._kept_from + unneeded
        return found

    def finish(self) -> list[SpeechSegment]:
        return [] if self._first is None else [self._segment(self._first, self._kept_from + len(self._kept))]

    def _hear(self, probability: float) -> list[SpeechSegment]:
        """The segment that the next frame ends, if it ends one."""
        number, found = self._frames, []
        if self._first is None:
            if probability >= BEGINS:
                self._first = number
        elif number - self._last > PAUSE_FRAMES or number - self._first >= MAX_FRAMES:
            found = [self._segment(self._first, (number + 1) * VAD_FRAME_SAMPLES)]
            self._first = number if probability >= BEGINS else None
        if self._first is not None and probability >= ENDS:
            self._last = number + 1
        return found

    def _segment(self, first: int, heard: int) -> SpeechSegment:
        """The one from this frame on, of which no sample behind `heard` is known."""
        start = max((first - PADDING_FRAMES) * VAD_FRAME_SAMPLES, self._told)
        self._told = min((self._last + PADDING_FRAMES) * VAD_FRAME_SAMPLES, heard)
        return SpeechSegment(start, self._kept[start - self._kept_from : self._told - self._kept_from])


def _own_detector() -> VoiceDetector:
    detection: VoiceDetection = provider_of(catalogue().default("vad"))
    return detection.detector()
