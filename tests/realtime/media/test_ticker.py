"""One clock for all calls."""

from __future__ import annotations

import asyncio
import time

from voiceapp.realtime.media.ticker import PERIOD_S, Ticker, ticker


class Watch:
    """How far the counted periods are from those that passed on the clock."""

    def __init__(self) -> None:
        self.late: list[float] = []
        """In periods, at every call. A busy machine is late at times; nobody is early."""
        self.count = 0
        self._begun = time.monotonic()

    def note(self, periods: int) -> None:
        self.count += periods
        self.late.append((time.monotonic() - self._begun) / PERIOD_S - self.count)


async def test_everybody_is_called_every_20_ms_and_nobody_after_leaving() -> None:
    clock, watch = Ticker(), Watch()
    left_at = others = 0
    done = asyncio.Event()

    def a(periods: int) -> None:
        watch.note(periods)
        if watch.count >= 25:
            done.set()

    def b(periods: int) -> None:
        nonlocal left_at, others
        others += periods
        if others >= 10:
            left_at = others
            clock.leave(b)

    clock.join(a)
    clock.join(b)
    await done.wait()
    assert -0.1 < min(watch.late) < 1
    assert others == left_at < watch.count
    clock.leave(a)
    clock.leave(a)


async def test_lost_time_is_made_up_for() -> None:
    clock, watch = Ticker(), Watch()
    seen: list[int] = []
    enough = asyncio.Event()

    def tick(periods: int) -> None:
        seen.append(periods)
        watch.note(periods)
        if len(seen) == 2:
            time.sleep(0.35)  # the loop stands still
        if watch.count >= 40:
            enough.set()

    clock.join(tick)
    await enough.wait()
    clock.leave(tick)
    assert -0.1 < min(watch.late[2:]) < 1
    assert max(seen) > 5  # what was too old was skipped


async def test_one_who_fails_does_not_silence_the_others() -> None:
    clock = Ticker()
    done = asyncio.Event()
    calls = 0

    def bad(periods: int) -> None:
        raise ZeroDivisionError

    def good(periods: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            done.set()

    clock.join(bad)
    clock.join(good)
    async with asyncio.timeout(20):
        await done.wait()
    clock.leave(good)


async def test_there_is_one_for_an_event_loop() -> None:
    assert ticker() is ticker()
