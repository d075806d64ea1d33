"""The log-mel picture of sound that Whisper and the turn model were trained on: 10 ms steps.

The band layout is Slaney's (linear to 1 kHz, logarithmic above, equal area), as the Whisper paper's front end uses it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples

WINDOW_SAMPLES = 400
STEP_SAMPLES = 160
BANDS = 80
"""Mel bands; the largest Whisper has 128."""
LINEAR_HZ_PER_MEL = 200 / 3
LINEAR_MELS = 15.0
"""1 kHz, where the scale turns logarithmic."""
LOG_STEP = np.log(6.4) / 27
FLOOR = 1e-10
RANGE_DECADES = 8.0


def log_mel(audio: Samples, *, bands: int = BANDS) -> NDArray[np.float32]:
    """Shape [bands, len(audio) // 160]; about -1 to 1 for audio of unit variance."""
    padded = np.pad(audio, WINDOW_SAMPLES // 2, mode="reflect")
    windows = sliding_window_view(padded, WINDOW_SAMPLES)[::STEP_SAMPLES][:-1]
    power = np.abs(np.fft.rfft(windows * _HANN, axis=-1)) ** 2
    decades = np.log10(np.maximum(_bank(bands) @ power.T, FLOOR))
    floored = np.maximum(decades, decades.max() - RANGE_DECADES)
    picture: NDArray[np.float32] = ((floored + 4) / 4).astype(np.float32)
    return picture


def _hz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    logarithmic = 1000 * np.exp(LOG_STEP * (np.maximum(mels, LINEAR_MELS) - LINEAR_MELS))
    return np.where(mels < LINEAR_MELS, mels * LINEAR_HZ_PER_MEL, logarithmic)


@cache
def _bank(bands: int) -> NDArray[np.float64]:
    """Triangular bands over the spectrum, shape [bands, 201]."""
    top_mels = LINEAR_MELS + np.log(ENGINE_SAMPLE_RATE_HZ / 2 / 1000) / LOG_STEP
    edges = _hz(np.linspace(0, top_mels, bands + 2))[:, None]
    bins = np.linspace(0, ENGINE_SAMPLE_RATE_HZ / 2, WINDOW_SAMPLES // 2 + 1)[None, :]
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    triangles = np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre))
    return np.maximum(triangles, 0) * 2 / (high - low)


_HANN = np.hanning(WINDOW_SAMPLES + 1)[:-1]
