"""Detection of echo: the correlation of microphone and loudspeaker, computed as seldom as will do.

`python -m tests.bench.interrupting` measures the thresholds.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.engines.sound.played_sound import PlayedSound
from voiceapp.protocol.states import ECHO_STEPS, EchoState, step

WINDOW_SAMPLES = ENGINE_SAMPLE_RATE_HZ // 2
LONGEST_DELAY_SAMPLES = ENGINE_SAMPLE_RATE_HZ * 6 // 10
LOOK_SAMPLES = ENGINE_SAMPLE_RATE_HZ // 25
"""From look to look, while it is not known whether there is an echo."""
LOOK_RARELY_SAMPLES = ENGINE_SAMPLE_RATE_HZ // 2
LIKE = 6.0
"""In 1,100 looks at 11 recordings of people who spoke with no echo, 0.5 % came to more and none twice with one delay;
of as many at echoes of -12 and -30 dB, 95 and 94 %."""
NEIGHBOURS_MS = 75
"""On both sides of a delay: what is usual there. Other delays may have met silence."""
SAME_DELAY_MS = 8.0
AGREEING_S = (0.25, 1.1)
"""Two looks agree that are so far apart: closer ones see mostly the same sound."""
REPEATED_S = 0.1
"""Two looks that are so near to one another are enough to suspect an echo."""
LOOKS_UNTIL_ABSENT = 75
LOOKS_UNTIL_USED = 15
LOOKS_FOR_SILENCE = 15
"""A microphone in which nothing at all is heard of loud sound says as much: the browser cancels the echo, or there is
none."""
LOOKS_UNTIL_LOST = 10
"""So many in vain: the caller has put on a headset."""
WHITENING = 0.85
AUDIBLE = 0.003
"""Level of audible playback: -50 dB below full scale."""
INAUDIBLE = 0.0002
"""Level of a microphone that hears nothing: less than a silent room."""
AUDIBLE_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Look:
    at_s: float
    likeness: float
    """The greatest correlation beside what is usual around it."""
    delay_ms: float


class EchoFinder:
    """Follows one session's microphone while something is played."""

    def __init__(self) -> None:
        self.state = EchoState.UNKNOWN
        self.recent: Samples = np.zeros(0, dtype=np.float32)
        """The last second of the microphone."""
        self._unseen = 0
        """Samples since the last look."""
        self._misses = 0
        self._hits: deque[Look] = deque(maxlen=30)

    @property
    def is_new(self) -> bool:
        """Too little was heard yet to know."""
        return self.state is EchoState.UNKNOWN and self._misses < LOOKS_UNTIL_USED

    @property
    def is_likely(self) -> bool:
        """There is an echo, as far as is known."""
        return self.state in (EchoState.SUSPECTED, EchoState.FOUND)

    def listen(self, near: Samples, first: int, played: PlayedSound) -> None:
        """Take what the microphone heard from sample `first` on; look for an echo when it is time to."""
        self.recent = np.concatenate((self.recent, near))[-ENGINE_SAMPLE_RATE_HZ:]
        self._unseen += len(near)
        is_known = self.state in (EchoState.FOUND, EchoState.ABSENT)
        if self._unseen < (LOOK_RARELY_SAMPLES if is_known else LOOK_SAMPLES):
            return
        self._unseen = 0
        window = self.recent[-WINDOW_SAMPLES:]
        end = first + len(near)
        far = played.between(end - len(window) - LONGEST_DELAY_SAMPLES, LONGEST_DELAY_SAMPLES + len(window))
        if loudness(far) < AUDIBLE:
            return
        if loudness(window) >= INAUDIBLE:
            self._judge(look(window, far, at_s=end / ENGINE_SAMPLE_RATE_HZ))
        elif self.state is EchoState.UNKNOWN and len(window) == WINDOW_SAMPLES and _is_audible_throughout(far):
            self._miss(LOOKS_FOR_SILENCE)

    def pause(self) -> None:
        """There is a gap in what the microphone heard."""
        self.recent = self.recent[:0]
        self._unseen = 0

    def _judge(self, seen: Look) -> None:
        if seen.likeness < LIKE:
            self._miss(1)
            if self.state is EchoState.SUSPECTED and seen.at_s - self._hits[-1].at_s > AGREEING_S[1]:
                self._step("doubt")
            return
        is_sure = any(_agree(before, seen) for before in self._hits)
        is_repeated = bool(self._hits) and _repeat(self._hits[-1], seen)
        self._hits.append(seen)
        if not is_sure and not is_repeated:
            return
        if is_sure:
            self._misses = 0
        self._step("agree" if is_sure else "hit")

    def _miss(self, looks: int) -> None:
        """So many looks were in vain."""
        self._misses += looks
        if self._misses >= (LOOKS_UNTIL_LOST if self.state is EchoState.FOUND else LOOKS_UNTIL_ABSENT):
            self._step("miss_all")

    def _step(self, name: str) -> None:
        before, self.state = self.state, step(ECHO_STEPS, self.state, name)
        if self.state is not before:
            self._misses = 0


def _agree(before: Look, after: Look) -> bool:
    apart_s = after.at_s - before.at_s
    return AGREEING_S[0] <= apart_s <= AGREEING_S[1] and abs(after.delay_ms - before.delay_ms) <= SAME_DELAY_MS


def _repeat(before: Look, after: Look) -> bool:
    return after.at_s - before.at_s <= REPEATED_S and abs(after.delay_ms - before.delay_ms) <= SAME_DELAY_MS


def look(near: Samples, far: Samples, *, at_s: float) -> Look:
    """Peak of the whitened cross-correlation of microphone and loudspeaker, which begins earlier: 0 to 1.

    Knapp and Carter, "The generalized correlation method for estimation of time delay" (1976), with most of the
    whitening, at 8 kHz. 0 where next to nothing was played.
    """
    near, far = (each[: len(each) // 2 * 2].reshape(-1, 2).mean(axis=1) for each in (near, far))
    size = 1 << (len(near) + len(far) - 1).bit_length()
    product = np.fft.rfft(near, size).conj() * np.fft.rfft(far, size)
    whitened = product / (np.abs(product) ** WHITENING + 1e-9)
    correlation = np.fft.irfft(whitened, size)[: len(far) - len(near) + 1].astype(np.float32)
    place = int(np.abs(correlation).argmax())
    reach = NEIGHBOURS_MS * ENGINE_SAMPLE_RATE_HZ // 2000
    usual = loudness(correlation[max(0, place - reach) : place + reach])
    delay_ms = (len(correlation) - 1 - place) * 2000 / ENGINE_SAMPLE_RATE_HZ
    if not usual or _audible_share(far[place : place + len(near)]) < AUDIBLE_SHARE:
        return Look(at_s, 0.0, delay_ms)
    return Look(at_s, float(np.abs(correlation[place])) / usual, delay_ms)


def loudness(samples: Samples) -> float:
    """The root of the mean square."""
    return math.sqrt(float(np.square(samples).mean())) if len(samples) else 0.0


def _is_audible_throughout(far: Samples) -> bool:
    """Whatever the delay, half a second of it would have been heard."""
    starts = range(0, LONGEST_DELAY_SAMPLES + 1, LONGEST_DELAY_SAMPLES // 4)
    return all(loudness(far[start : start + WINDOW_SAMPLES]) >= AUDIBLE for start in starts)


def _audible_share(samples: Samples) -> float:
    pieces = samples[: len(samples) // 80 * 80].reshape(-1, 80)
    return float((np.square(pieces).mean(axis=1) > AUDIBLE**2).mean()) if len(pieces) else 0.0
