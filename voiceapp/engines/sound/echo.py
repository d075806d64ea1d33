"""Echo cancellation: the sound of a caller's loudspeaker, removed from the microphone's by WebRTC's AEC3.

The far end is what the session sent, at the time a caller hears it who plays it as it arrives. The network and the
caller's buffers come on top, as a delay that the canceller finds by itself: 400 ms and more. Without an echo it takes
away the beginnings of what the caller says, so it runs only while there is one.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.engines.sound.echo_finder import EchoFinder, loudness
from voiceapp.engines.sound.played_sound import MicrophoneClock, PlayedSound
from voiceapp.engines.sound.resampling import InputConverter
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import EchoCancellation
from voiceapp.protocol.states import EchoRisk

logger = logging.getLogger(__name__)

STEP_SAMPLES = ENGINE_SAMPLE_RATE_HZ // 100
"""Samples that the canceller takes at once: 10 ms."""
TRAINED_SAMPLES = ENGINE_SAMPLE_RATE_HZ
"""Samples that the canceller needs to know the room."""
KEPT = 0.35
"""More of a sound than this is left where the caller is much louder than the echo."""
TAIL_S = 1.0
"""An echo is looked for so long after the last sound: the longest delay, and the room dies away."""


class Canceller(Protocol):
    """AEC3: one conversation's filter."""

    def process(self, near: Samples, far: Samples) -> Samples:
        """The near end without what it holds of the far end; whole steps of 10 ms."""


def canceller() -> Canceller | None:
    """A new one; None where the library has no package for this system."""
    library = _library()
    made: Canceller | None = None if library is None else library.EchoCanceller(sample_rate=ENGINE_SAMPLE_RATE_HZ)
    return made


@cache
def _library():  # type: ignore[no-untyped-def]  # a module, loaded when the first reply is heard
    try:
        import pywebrtc_audio
    except ImportError:
        logger.warning("pywebrtc-audio is not installed: echo is not cancelled.")
        return None
    return pywebrtc_audio


@dataclass(frozen=True, slots=True)
class Cleaned:
    to_detect: Samples
    """Without echo, and with gaps where echo and speech meet: who speaks is found here."""
    to_read: Samples
    risk: EchoRisk = EchoRisk.NONE


class EchoFilter:
    """The echo of one session. Belongs to one event loop: 10 ms of sound take it 60 µs."""

    def __init__(self, mode: EchoCancellation) -> None:
        self.mode = mode
        self._played = PlayedSound()
        self._clock = MicrophoneClock()
        self._canceller: Canceller | None = None
        self._finder = EchoFinder()
        self._cancelled_samples = 0
        self._rest: Samples = np.zeros(0, dtype=np.float32)
        self._converter: InputConverter | None = None
        self._format: AudioFormat | None = None
        self._response_id = ""

    def play(self, audio: bytes, audio_format: AudioFormat, *, response_id: str, at: float) -> None:
        """A piece of a response, as it is on the wire, is heard from `at` on."""
        if self.mode == "off":
            return
        if self._converter is None or (response_id, audio_format) != (self._response_id, self._format):
            self._response_id, self._format = response_id, audio_format
            self._converter = InputConverter(audio_format)
        self._played.add(self._converter.convert(audio), at)

    def clean(self, samples: Samples, now: float) -> Cleaned:
        """Return the arriving audio without the echo. While there is one, less than 10 ms wait for the next call."""
        first = self._clock.take(len(samples), now)
        is_possible = self.mode != "off" and first / ENGINE_SAMPLE_RATE_HZ < self._played.ends_at + TAIL_S
        if not is_possible:
            self._finder.pause()
            return self._untouched(samples)
        if self.mode == "auto":
            was_likely, before = self._finder.is_likely, self._finder.recent
            self._finder.listen(samples, first, self._played)
            if not self._finder.is_likely:
                return self._untouched(samples, EchoRisk.POSSIBLE if self._finder.is_new else EchoRisk.NONE)
            if not was_likely:  # it begins to learn the room from the second before
                self._cancelled_samples = 0
                self._cancel(before, first - len(before))
        waited = len(self._rest)
        near = self._joined(samples)
        whole = len(near) // STEP_SAMPLES * STEP_SAMPLES
        self._rest = near[whole:]
        near = near[:whole]
        cleaned = self._cancel(near, first - waited)
        return Cleaned(cleaned, near, self._risk(cleaned, near))

    def flush(self) -> Cleaned:
        """Return the audio that waits for more; the caller will send none."""
        return self._untouched(self._rest[:0])

    def _untouched(self, samples: Samples, risk: EchoRisk = EchoRisk.NONE) -> Cleaned:
        samples = self._joined(samples)
        return Cleaned(samples, samples, risk)

    def _risk(self, cleaned: Samples, near: Samples) -> EchoRisk:
        """A trained canceller leaves little of an echo, and most of what the caller says."""
        is_trained = self._cancelled_samples >= TRAINED_SAMPLES
        is_kept = loudness(cleaned) > loudness(near) * KEPT
        return EchoRisk.NONE if is_trained and is_kept else EchoRisk.LIKELY

    def _joined(self, samples: Samples) -> Samples:
        rest, self._rest = self._rest, self._rest[:0]
        return np.concatenate((rest, samples)) if len(rest) else samples

    def _cancel(self, near: Samples, first: int) -> Samples:
        self._canceller = self._canceller or canceller()
        if self._canceller is None or not len(near):
            return near
        self._cancelled_samples += len(near)
        return self._canceller.process(near, self._played.between(first, len(near)))
