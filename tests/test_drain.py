"""The drain by itself."""

from __future__ import annotations

import asyncio

from voiceapp.drain import Drain, drain_event


async def test_it_wakes_everyone_who_waits_and_those_who_come_late() -> None:
    drain = Drain()
    waiting = [asyncio.create_task(drain.wait_begun()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    drain.begin()
    drain.begin()
    await asyncio.gather(*waiting)
    await drain.wait_begun()


async def test_it_is_idle_only_after_the_last_work() -> None:
    drain = Drain()
    await drain.wait_idle()
    with drain.work():
        with drain.work():
            assert drain.working == 2
        waiting = asyncio.create_task(drain.wait_idle())
        await asyncio.sleep(0)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 60)


async def test_it_forgets_a_waiter_that_was_cancelled() -> None:
    drain = Drain()
    waiting = asyncio.create_task(drain.wait_begun())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    drain.begin()
    assert drain.begun


def test_a_process_that_was_not_told_does_not_drain() -> None:
    assert not drain_event().begun
