"""What may wait of a caller's messages."""

from __future__ import annotations

import asyncio

import pytest

from voiceapp.errors import FloodError
from voiceapp.realtime.media.arrivals import Arrivals

LARGEST = "x" * 1024 * 1024


async def test_messages_that_were_not_read_are_bounded_in_bytes() -> None:
    arrivals = Arrivals()
    for message in (LARGEST, "{}", "{}"):
        arrivals.message(message)
    for _ in range(60):
        arrivals.message(LARGEST)
    assert [await arrivals.take() for _ in range(3)] == [LARGEST, "{}", "{}"]
    with pytest.raises(FloodError):
        await arrivals.take()


async def test_who_can_be_kept_waiting_waits_for_room() -> None:
    arrivals = Arrivals()

    async def bring() -> None:
        for _ in range(60):
            await arrivals.wait_room()
            arrivals.message(LARGEST)

    bringing = asyncio.create_task(bring())
    async with asyncio.timeout(10):
        for _ in range(60):
            assert await arrivals.take() == LARGEST
    await bringing
