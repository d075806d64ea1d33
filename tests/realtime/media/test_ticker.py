"""One clock for all calls."""

from __future__ import annotations

import asyncio
import time

from voiceapp.realtime.media.ticker import Ticker, ticker


async def test_everybody_is_called_every_20_ms_and_nobody_after_leaving() -> None:
    clock = Ticker()
    counts = {"a": 0, "b": 0}
    done = asyncio.Event()

    def a(periods: int) -> None:
        counts["a"] += periods
        if counts["a"] >= 25:
            done.set()

    def b(periods: int) -> None:
        counts["b"] += periods
        if counts["b"] == 10:
            clock.leave(b)

    begun = time.monotonic()
    clock.join(a)
    clock.join(b)
    await done.wait()
    assert 0.45 < time.monotonic() - begun < 0.8
    assert counts["b"] == 10
    clock.leave(a)
    clock.leave(a)


async def test_lost_time_is_made_up_for() -> None:
    clock = Ticker()
    seen: list[int] = []
    enough = asyncio.Event()

    def tick(periods: int) -> None:
        seen.append(periods)
        if len(seen) == 2:
            time.sleep(0.35)  # the loop stands still
        if sum(seen) >= 40:
            enough.set()

    begun = time.monotonic()
    clock.join(tick)
    await enough.wait()
    clock.leave(tick)
    assert abs(time.monotonic() - begun - 0.8) < 0.2
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
    async with asyncio.timeout(2):
        await done.wait()
    clock.leave(good)


async def test_there_is_one_for_an_event_loop() -> None:
    assert ticker() is ticker()
