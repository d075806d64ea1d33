"""One object for each event loop."""

from __future__ import annotations

import asyncio
import gc

import pytest

from voiceapp.event_loops import per_loop, within


class Thing:
    pass


def test_each_loop_has_one_of_its_own() -> None:
    thing = per_loop(Thing)

    async def twice() -> tuple[Thing, Thing]:
        return thing(), thing()

    first, again = asyncio.run(twice())
    other, _ = asyncio.run(twice())
    assert first is again
    assert first is not other


def test_it_goes_with_its_loop() -> None:
    made: list[int] = []

    class Counted:
        def __init__(self) -> None:
            made.append(1)

        def __del__(self) -> None:
            made.pop()

    counted = per_loop(Counted)

    async def once() -> None:
        counted()

    asyncio.run(once())
    gc.collect()
    assert made == []


def test_it_needs_a_running_loop() -> None:
    with pytest.raises(RuntimeError):
        per_loop(Thing)()


class Waiting:
    """Something within 60 seconds, at a gate, and whether it has left."""

    def __init__(self) -> None:
        self.gate: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.has_left = False

    async def wait(self) -> str:
        try:
            return await self.gate
        finally:
            self.has_left = True

    async def begun(self) -> asyncio.Task[str]:
        working = asyncio.create_task(within(60.0, self.wait()))
        await asyncio.sleep(0)
        return working


async def test_what_has_nothing_to_wait_for_makes_no_timer() -> None:
    async def at_once(divisor: int) -> float:
        return 1 / divisor

    loop = asyncio.get_running_loop()
    before = len(loop._scheduled)  # type: ignore[attr-defined]
    assert await within(0.0, at_once(1)) == 1
    assert len(loop._scheduled) == before  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        await within(0.0, at_once(0))


async def test_what_waits_too_long_is_cancelled() -> None:
    waiting = Waiting()
    with pytest.raises(TimeoutError):
        await within(0.01, waiting.wait())
    assert waiting.has_left


async def test_what_waits_in_time_goes_on() -> None:
    waiting = Waiting()
    working = await waiting.begun()
    waiting.gate.set_result("open")
    assert await working == "open"
    assert waiting.has_left


async def test_who_cancels_it_cancels_what_waits() -> None:
    waiting = Waiting()
    working = await waiting.begun()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert waiting.has_left


async def test_an_error_while_it_waits_reaches_it() -> None:
    waiting = Waiting()
    working = await waiting.begun()
    waiting.gate.set_exception(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        await working
    assert waiting.has_left
