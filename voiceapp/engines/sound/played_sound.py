"""Played audio and the time when the microphone heard it, by one clock: the session's, at 16 kHz."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples

JOIN_SAMPLES = ENGINE_SAMPLE_RATE_HZ // 100
"""Pieces that are so near to one another are joined: resampling moves their edges a little."""
KEPT_S = 3.0
"""Played audio that is kept, for microphones that are late, and to begin with."""
AHEAD_S = 30.0
"""Audio still to be heard that is kept; a session that finishes hands out everything at once."""
GAP_S = 1.0
"""So late is nothing but what was recorded after a gap, such as that of a caller who muted the microphone."""
LATE_S = 0.08
LATE_CHUNKS = 20
"""So many chunks in a row are all later than that: the caller's audio was interrupted, and its clock is set anew."""


class PlayedSound:
    """Audio of the caller's loudspeaker, by the clock of the session."""

    def __init__(self) -> None:
        self._samples: Samples = np.zeros(0, dtype=np.float32)
        self._start = 0
        """The number of the first sample, counted at 16 kHz from the clock's zero."""

    @property
    def ends_at(self) -> float:
        return (self._start + len(self._samples)) / ENGINE_SAMPLE_RATE_HZ if len(self._samples) else -math.inf

    def add(self, samples: Samples, at: float) -> None:
        """Play from `at` on; what was to be heard then and later is not played."""
        start = round(at * ENGINE_SAMPLE_RATE_HZ)
        end = self._start + len(self._samples)
        if not len(self._samples) or start - end > KEPT_S * ENGINE_SAMPLE_RATE_HZ:
            self._samples, self._start = samples, start
            return
        if abs(start - end) <= JOIN_SAMPLES:
            start = end
        start = max(start, self._start)
        gap = np.zeros(max(0, start - end), dtype=np.float32)
        self._samples = np.concatenate((self._samples[: start - self._start], gap, samples))
        most = int(AHEAD_S * ENGINE_SAMPLE_RATE_HZ)
        self._drop(len(self._samples) - most)

    def between(self, start: int, count: int) -> Samples:
        """So many samples from number `start` on, silence where nothing is played; what is long past is forgotten."""
        found = np.zeros(count, dtype=np.float32)
        first = max(start, self._start)
        part = self._samples[first - self._start : max(0, start + count - self._start)]
        found[first - start : first - start + len(part)] = part
        self._drop(start - self._start - int(KEPT_S * ENGINE_SAMPLE_RATE_HZ))
        return found

    def _drop(self, count: int) -> None:
        if count > 0:
            self._samples, self._start = self._samples[count:], self._start + count


class MicrophoneClock:
    """Time of recording of what arrives, estimated from the arrivals that travelled fastest."""

    def __init__(self) -> None:
        self._begins_at: float | None = None
        self._count = 0
        self._late: deque[float] = deque(maxlen=LATE_CHUNKS)

    def take(self, count: int, now: float) -> int:
        """The number of the first of `count` samples that arrive now, at 16 kHz from the clock's zero."""
        first = self._count
        self._count += count
        seen = now - self._count / ENGINE_SAMPLE_RATE_HZ
        if self._begins_at is None or seen < self._begins_at or seen - self._begins_at > GAP_S:
            self._begins_at = seen
            self._late.clear()
        self._late.append(seen - self._begins_at)
        if len(self._late) == LATE_CHUNKS and min(self._late) > LATE_S:
            self._begins_at += min(self._late)
            self._late.clear()
        return round(self._begins_at * ENGINE_SAMPLE_RATE_HZ) + first
