"""A tone, and how high a sound is."""

from __future__ import annotations

import numpy as np

from voiceapp.engines.interfaces import Samples

HZ = 440


def tone(seconds: float, rate_hz: int = 16_000, *, hz: float = HZ, loudness: int = 8_000) -> bytes:
    """16-bit samples; the loudest are `loudness`."""
    times = np.arange(int(seconds * rate_hz)) / rate_hz
    pcm: bytes = (np.sin(2 * np.pi * hz * times) * loudness).astype("<i2").tobytes()
    return pcm


def pitch_hz(sound: Samples | bytes, rate_hz: int = 16_000) -> float:
    """The loudest frequency of samples, or of PCM."""
    samples = np.frombuffer(sound, dtype="<i2") if isinstance(sound, bytes) else sound
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(spectrum.argmax()) * rate_hz / len(samples)
