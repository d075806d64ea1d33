"""Sounds that are not speech, made from numbers: the same ones every time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ as RATE
from voiceapp.engines.interfaces import Samples

Sound = NDArray[np.float64]


def noises(count: int) -> Iterator[tuple[str, Samples]]:
    """So many noises with their names: each kind in turn, at three levels."""
    for seed in range(count):
        random = np.random.default_rng(seed)
        make = KINDS[seed % len(KINDS)]
        level = random.choice([0.05, 0.2, 0.6])
        sound = make(random)
        yield f"{make.__name__} {seed}", (level * sound / np.abs(sound).max()).astype(np.float32)


def clicks(random: Generator) -> Sound:
    sound = np.zeros(int(RATE * 1.5))
    for _ in range(random.integers(1, 6)):
        start, length = random.integers(0, RATE), random.integers(20, 200)
        sound[start : start + length] += random.normal(0, 1, length) * np.exp(-np.arange(length) / (length / 4))
    return sound


def hum(random: Generator) -> Sound:
    """Of the mains, with its overtones."""
    seconds = np.arange(int(RATE * random.uniform(1, 2.5))) / RATE
    hertz = random.choice([50, 60, 100, 120])
    overtones = range(1, random.integers(3, 9))
    return np.sum([np.sin(2 * np.pi * hertz * k * seconds + random.uniform(0, 6)) / k for k in overtones], axis=0)


def white_burst(random: Generator) -> Sound:
    length = int(RATE * random.uniform(0.2, 1.5))
    return _band(random, length, 50, 8000) * _decay(length, 0.01, random.uniform(0.2, 2))


def pink_burst(random: Generator) -> Sound:
    length = int(RATE * random.uniform(0.2, 1.5))
    return _band(random, length, 50, 8000, tilt=0.5) * _decay(length, 0.02, random.uniform(0.2, 2))


def keyboard(random: Generator) -> Sound:
    sound, at = np.zeros(int(RATE * 2.2)), 0
    while at < RATE * 2:
        length = int(RATE * random.uniform(0.01, 0.04))
        key = _band(random, length, 1000, 7000) * np.exp(-np.arange(length) / (length / 5))
        sound[at : at + length] += key * random.uniform(0.4, 1)
        at += int(RATE * random.uniform(0.06, 0.25))
    return sound


def breath(random: Generator) -> Sound:
    length = int(RATE * random.uniform(0.5, 1.6))
    swell = np.sin(np.pi * np.linspace(0, 1, length)) ** random.uniform(0.5, 2)
    return _band(random, length, 300, 5000, tilt=0.7) * swell


def dry_cough(random: Generator) -> Sound:
    """Bursts of noise with a little voice at their ends."""
    parts: list[Sound] = []
    for _ in range(random.integers(1, 4)):
        length = int(RATE * random.uniform(0.15, 0.4))
        places = ((random.uniform(300, 700), 150, 1.0), (random.uniform(1000, 1800), 300, 0.7))
        burst = np.sum([_band(random, length, max(80, at - w), at + w) * gain for at, w, gain in places], axis=0)
        voiced = int(length * random.uniform(0.3, 0.6))
        pitch = random.uniform(90, 220) * np.arange(length) / RATE
        voice = np.sign(np.sin(2 * np.pi * pitch))
        voice *= np.concatenate([np.zeros(length - voiced), np.linspace(0.6, 0, voiced)])
        parts += [(burst + 0.3 * voice) * _decay(length, 0.005, random.uniform(0.05, 0.15)), _pause(random)]
    return np.concatenate(parts)


def voiced_cough(random: Generator) -> Sound:
    """A burst, then a falling voice through a throat: what voice detection takes for speech most of all."""
    parts: list[Sound] = []
    for _ in range(random.integers(1, 4)):
        length = int(RATE * random.uniform(0.03, 0.08))
        burst = _band(random, length, 300, 6000, tilt=0.3) * np.exp(-np.arange(length) / (length / 2))
        length = int(RATE * random.uniform(0.1, 0.35))
        seconds = np.arange(length) / RATE
        pitch = np.cumsum(random.uniform(100, 300) * (1 - 0.3 * seconds / seconds[-1])) / RATE
        source = (2 * (pitch % 1) - 1) * random.uniform(0.3, 1) + 0.5 * random.normal(0, 1, length)
        throat = ((random.uniform(450, 800), 80, 1), (random.uniform(1000, 1600), 120, 0.6))
        spectrum, hertz = np.fft.rfft(source), np.fft.rfftfreq(length, 1 / RATE)
        gain = np.sum([strength / (1 + ((hertz - at) / width) ** 2) for at, width, strength in throat], axis=0)
        voice = np.fft.irfft(spectrum * gain, length) * np.exp(-seconds / random.uniform(0.06, 0.15))
        parts += [burst * 0.8, voice / np.abs(voice).max(), _pause(random)]
    return np.concatenate(parts)


KINDS: tuple[Callable[[Generator], Sound], ...] = (
    clicks,
    hum,
    white_burst,
    pink_burst,
    keyboard,
    breath,
    dry_cough,
    voiced_cough,
)


def _band(random: Generator, length: int, low_hz: float, high_hz: float, *, tilt: float = 0.0) -> Sound:
    """Noise between two frequencies, peak 1; `tilt` is the power of the frequency with which it falls."""
    spectrum, hertz = np.fft.rfft(random.normal(0, 1, length)), np.fft.rfftfreq(length, 1 / RATE)
    gain = ((hertz >= low_hz) & (hertz <= high_hz)) * np.maximum(hertz, 20.0) ** -tilt
    sound = np.fft.irfft(spectrum * gain, length)
    return np.asarray(sound / np.abs(sound).max())


def _decay(length: int, attack_s: float, decay_s: float) -> Sound:
    seconds = np.arange(length) / RATE
    return np.minimum(1, seconds / attack_s) * np.exp(-np.maximum(0, seconds - attack_s) / decay_s)


def _pause(random: Generator) -> Sound:
    return np.zeros(int(RATE * random.uniform(0.1, 0.35)))
