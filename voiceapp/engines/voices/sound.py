"""Finish of a model's sound before it is heard: clean ends, an even level, no clicks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.interfaces import Samples

WINDOW_S = 0.01
EDGE_S = 0.03
"""Silence that is left before and behind the words."""
FADE_S = 0.005
SILENT = 0.02
"""Loudness below which a window is silent, as a share of the loudest."""
LEVEL = 0.1
"""Root mean square of the words, as a share of full scale: what espeak-ng's voices have."""
MAX_GAIN = 8.0
MEMORY_S = 5.0
"""So much speech tells how loud a model is."""
FORGET = 0.9
"""Share of the loudest window that is left after each part of sound."""
TINY = 1e-6
PEAK = 0.95


class Loudness:
    """Loudness of a model, learned from its speech; shared by everybody who speaks with it."""

    def __init__(self) -> None:
        self.is_known = False
        self._power = 0.0
        self._loudest = 0.0

    @property
    def gain(self) -> np.float32:
        """Gain that brings the words to the level of all voices."""
        return np.float32(min(LEVEL / max(np.sqrt(self._power), TINY), MAX_GAIN))

    def heard(self, loudness: Samples) -> NDArray[np.bool_]:
        """Return the windows that are not silent; `loudness` is the root mean square of each, in order."""
        return loudness > SILENT * max(self._loudest, TINY)

    def learn(self, loudness: Samples) -> None:
        """Take the windows of what is to be heard next into account, the latest most."""
        if not len(loudness):
            return
        self._loudest = max(float(loudness.max()), FORGET * self._loudest)
        heard = loudness[self.heard(loudness)]
        if not len(heard):
            return
        share = min(1.0, len(heard) * WINDOW_S / MEMORY_S) if self.is_known else 1.0
        self._power += share * (float(np.square(heard).mean()) - self._power)
        self.is_known = True


class Finisher:
    """Turns the sound of one piece, as a model makes it, into what is heard: without the silence around its words, at
    the level of all voices, faded in and out.

    Sound comes and goes as float32 in [-1, 1], shape (samples,). A little is held back until it is known whether words
    follow, so what goes out together may be empty; it all is when nothing is heard.
    """

    def __init__(self, loudness: Loudness, sample_rate_hz: int) -> None:
        self._loudness = loudness
        self._window = int(WINDOW_S * sample_rate_hz)
        self._edge = int(EDGE_S * sample_rate_hz)
        self._fade = np.linspace(0, 1, int(FADE_S * sample_rate_hz), dtype=np.float32)
        self._gain: np.float32 | None = None
        self._rest = np.zeros(0, dtype=np.float32)
        """Too short for a window."""
        self._held = np.zeros(0, dtype=np.float32)
        """The latest window and the silence before it."""
        self._has_words = False
        self._has_begun = False
        self.cut = 0
        """Samples of silence that were left out before the words."""

    def feed(self, sound: Samples) -> Samples:
        """Return the audio that may be heard of this and of what was held back."""
        sound = np.concatenate((self._rest, sound))
        count = len(sound) // self._window
        sound, self._rest = np.split(sound, [count * self._window])
        loudness = np.sqrt(np.square(sound.reshape(count, self._window)).mean(axis=1))
        self._loudness.learn(loudness)
        if self._gain is None:
            self._gain = self._loudness.gain
        heard = np.flatnonzero(self._loudness.heard(loudness)) * self._window + len(self._held)
        so_far = np.concatenate((self._held, sound))
        if not len(heard):
            self._held = so_far if self._has_words else so_far[-self._edge :]
            self.cut += len(so_far) - len(self._held)
            return so_far[:0]
        begin = 0 if self._has_words else max(0, int(heard[0]) - self._edge)
        self.cut += begin
        self._has_words = True
        self._held = so_far[heard[-1] :]
        return self._finished(so_far[begin : heard[-1]], self._gain)

    def flush(self) -> Samples:
        """The piece has ended: what is left of it."""
        if self._gain is None or not self._has_words:
            return self._held[:0]
        last = self._finished(self._held[: self._window + self._edge], self._gain)
        fade = self._fade[: len(last)]
        last[len(last) - len(fade) :] *= fade[::-1]
        return last

    def _finished(self, sound: Samples, gain: np.float32) -> Samples:
        levelled = _limited(sound * gain)
        if len(levelled) and not self._has_begun:
            self._has_begun = True
            fade = self._fade[: len(levelled)]
            levelled[: len(fade)] *= fade
        return levelled


def _limited(sound: Samples) -> Samples:
    """Bend peaks instead of cutting them: up to half of full scale nothing changes."""
    knee = PEAK / 2
    size = np.abs(sound)
    bent = knee + (PEAK - knee) * np.tanh((size - knee) / (PEAK - knee))
    return np.where(size > knee, np.sign(sound) * bent, sound).astype(np.float32)
