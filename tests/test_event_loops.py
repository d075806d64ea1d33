"""One object for each event loop."""

from __future__ import annotations

import asyncio
import gc

import pytest

from voiceapp.event_loops import per_loop


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
