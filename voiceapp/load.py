"""Measured load of this process, and how many sessions it may hold for that.

A turn waits about five times for a voice thread or the event loop, and one in twenty for twice as long: that takes the
whole of TURN_BUDGET_MS where the mean wait is a tenth of it.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from functools import cache

from django.conf import settings

WINDOW_S = 3.0
"""Waits count for so long."""
FEW = 8
"""So many waits are needed for their mean to count in full: a single long one is no load."""
AHEAD = 4
"""New sessions for each voice thread that may begin before they show in the waits."""
GROWTH_PER_S = 0.25
"""Further ones for each voice thread, while nothing waits."""

Waits = deque[tuple[float, float]]
"""Each with its end, in seconds."""


class Load:
    """Holds back new sessions while those that are open wait too long. Waits may come from any thread."""

    def __init__(self, budget_ms: float, threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_s = budget_ms / 10_000
        """Mean wait from which on no session may begin."""
        self._threads = threads
        self._clock = clock
        self._loop, self._voice = Waits(maxlen=200), Waits(maxlen=200)
        self.forget()

    def forget(self) -> None:
        """Begin anew: what was measured were no turns."""
        self._loop.clear()
        self._voice.clear()
        self._limit = float(AHEAD * self._threads)
        self._at = self._clock()

    def loop_waited(self, seconds: float) -> None:
        self._loop.append((self._clock(), seconds))

    def voice_waited(self, seconds: float) -> None:
        self._voice.append((self._clock(), seconds))

    def most_sessions(self, count: int) -> int:
        """Return how many sessions may be open at once, while `count` are.

        While waits are too long, it is those that are open, though one for each voice thread always. It grows again the
        slower, the longer they are; without news of the event loop, which may have stood still, it does not.
        """
        if self._most_s <= 0:
            return sys.maxsize
        now, before = self._clock(), self._at
        self._at = now
        waits = [[wait for at, wait in (*kept,) if now - at < WINDOW_S] for kept in (self._loop, self._voice)]
        share = max(sum(each) / max(len(each), FEW) for each in waits) / self._most_s
        if share >= 1:
            self._limit = min(self._limit, max(count, self._threads))
        elif waits[0]:
            grown = self._limit + GROWTH_PER_S * self._threads * (now - before) * (1 - share)
            self._limit = min(grown, count + AHEAD * self._threads)
        return int(self._limit)


@cache
def load() -> Load:
    """The load of this process, by the settings."""
    return Load(settings.TURN_BUDGET_MS, settings.VOICE_THREADS)
