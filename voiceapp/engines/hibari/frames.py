"""Sound from the frames of hibari's model, in parts; `hibari.dsp` makes it at one go.

Each frame of 12.5 ms is the sum of three spectra: pulses in the pitch of the voice, noise, and one with a phase of its
own. Four frames overlap at each moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from hibari import dsp
from numpy.lib.stride_tricks import sliding_window_view

from voiceapp.engines.interfaces import Samples

FIRST_FRAMES, MOST_FRAMES = 48, 192
"""Frames in a part. Each has twice as many as the one before; the first begins with 0.3 s of silence."""
OVERLAP = dsp.N_FFT // dsp.HOP
GAIN = np.float32(dsp.HOP / np.square(dsp.WIN).sum())
"""Inverse of the sum of the squared windows that overlap."""


def sound_of(frames: Sequence[Samples], *, pitch: float) -> Iterator[Samples]:
    """Sound at 24 kHz of the model's outputs, each of the shape (bins, frames) and the last (frames,).

    `pitch` is a factor to the pitch of the voice, which leaves its timbre as it is.
    """
    *shapes, f0 = frames
    pulses = np.pad(dsp.pulses(f0 * np.float32(pitch)), dsp.N_FFT // 2, mode="reflect")
    windows = sliding_window_view(pulses, dsp.N_FFT)[:: dsp.HOP][: len(f0)]
    random = np.random.default_rng()
    overlap = np.zeros((OVERLAP - 1, dsp.HOP), dtype=np.float32)
    begin, size = 0, FIRST_FRAMES
    while begin < len(f0):
        end = min(begin + size, len(f0))
        voiced, angle, breath, other, phase = (shape[:, begin:end] for shape in shapes)
        spectra = dsp.rfft(windows[begin:end] * dsp.WIN_SRC, 1).T * _polar(voiced, np.float32(np.pi) * np.tanh(angle))
        spectra += _noise(random, breath.shape) * dsp.ex(breath)
        spectra += _polar(other, phase)
        parts = (dsp.irfft(spectra.T, dsp.N_FFT, 1) * dsp.WIN).reshape(-1, OVERLAP, dsp.HOP)
        made = np.zeros((len(parts) + OVERLAP - 1, dsp.HOP), dtype=np.float32)
        made[: OVERLAP - 1] = overlap
        for place in range(OVERLAP):
            made[place : place + len(parts)] += parts[:, place]
        overlap = made[len(parts) :]
        yield made[: len(parts)].reshape(-1) * GAIN
        begin, size = end, min(2 * size, MOST_FRAMES)


def _polar(log_magnitude: Samples, phase: Samples) -> np.ndarray:
    found = np.empty(phase.shape, dtype=np.complex64)
    np.cos(phase, out=found.real)
    np.sin(phase, out=found.imag)
    found *= dsp.ex(log_magnitude)
    return found


def _noise(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.standard_normal((shape[0], 2 * shape[1]), dtype=np.float32).view(np.complex64)
