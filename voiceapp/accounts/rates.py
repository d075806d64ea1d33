"""Rates of calls per account and operation: exactly so many in any window, not on average.

A token bucket of 20 a second lets nearly 40 through in its first second. This keeps the times of the last calls let
through and refuses one while the oldest of them is younger than the window. With `REDIS_URL`, all processes share one
log, timed by Redis's own clock. Every process keeps its own log as well: when Redis is gone, that one decides.
Any thread may ask: doors from the event loop's, tasks from their own.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from django.conf import settings

from voiceapp.errors import Throttled

if TYPE_CHECKING:
    from redis.commands.core import AsyncScript

logger = logging.getLogger(__name__)

OFF = "off"
REMEMBERED_LOGS = 10_000
REDIS_TIMEOUT_S = 0.5
REDIS_PAUSE_S = 1.0
"""Pause after a Redis failed, so that calls do not all wait for it."""

SHARED_LOG = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local calls, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local oldest = redis.call('LINDEX', KEYS[1], calls - 1)
if oldest and now - oldest < window then
  return oldest + window - now
end
redis.call('LPUSH', KEYS[1], string.format('%.0f', now))
redis.call('LTRIM', KEYS[1], 0, calls - 1)
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
return 0
"""
"""Lets a call through and answers 0, or answers after how many microseconds it would. All times in microseconds."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls in any window of so many seconds."""

    calls: int
    window_s: float

    @classmethod
    def parse(cls, text: str) -> Rate | None:
        """`20/1` is twenty calls in any second; `off` is None, no limit.

        Raises:
            ValueError: if it is neither.
        """
        if text.strip().lower() == OFF:
            return None
        calls, _, window = text.partition("/")
        rate = cls(int(calls), float(window))
        if rate.calls < 1 or not 0 < rate.window_s < math.inf:
            raise ValueError(f"{text!r} lets no call through.")
        return rate


def limit(operation: str) -> Rate | None:
    """The limit of an operation, by the settings; None is none."""
    return Rate.parse(settings.RATE_LIMITS.get(operation, settings.RATE_LIMITS["default"]))


class SlidingLog:
    """The times of the last calls let through, by who called what; beyond a number of logs the idlest is forgotten."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, capacity: int = REMEMBERED_LOGS) -> None:
        self._clock = clock
        self._capacity = capacity
        self._logs: OrderedDict[str, deque[float]] = OrderedDict()
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._logs)

    def wait_s(self, key: str, rate: Rate) -> float:
        """After how many seconds a call would be let through; 0 is now."""
        log = self._logs.get(key)
        if log is None or len(log) < rate.calls:
            return 0.0
        return max(0.0, log[-rate.calls] + rate.window_s - self._clock())

    def record(self, key: str, rate: Rate, at: float) -> None:
        """A call was let through that came at this time of the clock."""
        with self._guard:
            log = self._logs.get(key)
            if log is None or log.maxlen != rate.calls:
                log = self._logs[key] = deque(log or (), maxlen=rate.calls)
            log.append(at)
            self._logs.move_to_end(key)
            while len(self._logs) > self._capacity:
                self._logs.popitem(last=False)


class RedisLog:
    """Log of calls in a Redis that several processes share."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._scripts: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncScript] = WeakKeyDictionary()
        """One client for every event loop: a connection belongs to the loop that opened it."""

    async def wait_s(self, key: str, rate: Rate) -> float:
        """Let a call through and answer 0.0, or answer after how many seconds it would be.

        Raises:
            OSError: if Redis does not answer as it should, in time.
        """
        from redis.exceptions import RedisError

        window_us = round(rate.window_s * 1_000_000)
        try:
            async with asyncio.timeout(REDIS_TIMEOUT_S):
                wait_us = await self._script()(keys=[f"voiceapp:rate:{key}"], args=[rate.calls, window_us])
        except RedisError as error:
            raise OSError(f"Redis: {error}") from error
        return int(wait_us) / 1_000_000

    async def close(self) -> None:
        """Close this loop's connections."""
        script = self._scripts.pop(asyncio.get_running_loop(), None)
        if script is not None:
            await script.registered_client.aclose()

    def _script(self) -> AsyncScript:
        import redis.asyncio
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        loop = asyncio.get_running_loop()
        if loop not in self._scripts:
            # One retry: the first call after a restart of Redis finds a connection that is dead without knowing it.
            client = redis.asyncio.Redis.from_url(self._url, retry=Retry(NoBackoff(), 1))
            self._scripts[loop] = client.register_script(SHARED_LOG)
        return self._scripts[loop]


class Rates:
    def __init__(
        self,
        *,
        shared: RedisLog | None = None,
        limit_of: Callable[[str], Rate | None] = limit,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shared = shared
        self._limit_of = limit_of
        self._clock = clock
        self._own = SlidingLog(clock=clock)
        self._shared_from = -math.inf
        self.alone = 0
        """Calls that this process decided about by itself because Redis did not answer."""

    async def admit(self, who: int | str, operation: str) -> None:
        """Let one call of an operation through; `who` is the id of an account, or the neighbourhood of a guest.

        Raises:
            Throttled: if they have used up their calls; this one is not counted then.
        """
        rate = self._limit_of(operation)
        if rate is not None and (wait_s := await self.count(f"{who}:{operation}", rate)):
            raise Throttled(retry_after_s=max(1, math.ceil(wait_s)))

    def wait_s(self, key: str, rate: Rate) -> float:
        """Return after how many seconds a call would be let through, as far as this process knows."""
        return self._own.wait_s(key, rate)

    async def count(self, key: str, rate: Rate) -> float:
        """Let a call through and return 0, or return after how many seconds it would be."""
        asked_at = self._clock()
        wait_s = self._own.wait_s(key, rate)
        if not wait_s:
            answer_s = await self._ask_shared(key, rate)
            # Without an answer: other calls may have been let through since this process last looked.
            wait_s = self._own.wait_s(key, rate) if answer_s is None else answer_s
        if not wait_s:
            # The time of asking lies before the time that Redis noted, so this log never refuses what Redis would not.
            self._own.record(key, rate, asked_at)
        return wait_s

    async def _ask_shared(self, key: str, rate: Rate) -> float | None:
        """Ask the shared log; None when there is none, or none that answers."""
        if self._shared is None:
            return None
        if self._clock() >= self._shared_from:
            try:
                return await self._shared.wait_s(key, rate)
            except OSError as error:  # TimeoutError is one
                logger.warning("counting rates in this process alone for a while: %s", error or "Redis took too long")
                self._shared_from = self._clock() + REDIS_PAUSE_S
        self.alone += 1
        return None

    async def close(self) -> None:
        if self._shared is not None:
            await self._shared.close()


@functools.cache
def rates() -> Rates:
    return Rates(shared=RedisLog(settings.REDIS_URL) if settings.REDIS_URL else None)
