"""Callers of `echo_aoq`: one that listens, and one that times how long objects are on their way there and back."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiohttp
import moq

from tests.realtime.aoq.peer import client
from voiceapp.realtime.media.ticker import ticker


class AoqCaller:
    """Sends the same speech for ever and notes when objects come."""

    def __init__(self, packets: list[bytes], path: str = "") -> None:
        self.arrivals: list[float] = []
        self.round_trips_ms: list[float] = []
        self.connect_ms = 0.0
        self._packets = packets
        self._path = path
        self._number = 0
        self._sent_at: dict[int, float] = {}
        self._talking = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        origin = moq.OriginProducer()
        self._broadcast = origin.create_broadcast("client")
        self._audio = self._broadcast.publish_track("audio")
        self._data = self._broadcast.publish_track("data")
        self._broadcast.announce()
        self._origin = origin
        self._connection: Any = None

    async def call(self, url: str) -> None:
        """Returns with the first object of the bot."""
        begun = time.monotonic()
        async with aiohttp.ClientSession() as session, session.post(url) as response:
            place = await response.json()
        address = f"https://127.0.0.1:{place['port']}/{self._path}"
        self._connection = client(address, place["fingerprint"], self._origin)
        await self._connection.__aenter__()
        server = await self._connection.announced_broadcast("server")
        self._events = await server.subscribe_track("data", moq.Subscription(priority=255, max_age_us=30_000_000))
        sound = await server.subscribe_track("audio", moq.Subscription(priority=200, max_age_us=1_000_000))
        await asyncio.gather(self._audio.used(), self._data.used())
        self._data.write_frame(b'{"type": "ready"}')
        self._tasks.append(asyncio.create_task(self._listen(sound)))
        ticker().join(self._tick)
        async with asyncio.timeout(20):
            await self._talking.wait()
        self.connect_ms = (self.arrivals[0] - begun) * 1000

    async def hang_up(self) -> None:
        ticker().leave(self._tick)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._connection.__aexit__(None, None, None)

    async def _listen(self, sound: Any) -> None:
        while (group := await sound.recv_group()) is not None:
            if await group.read_frame() is not None:
                now = time.monotonic()
                self.arrivals.append(now)
                self._talking.set()
                if (sent_at := self._sent_at.pop(group.sequence, None)) is not None:
                    self.round_trips_ms.append((now - sent_at) * 1000)

    def _tick(self, periods: int) -> None:
        if self._path:
            self._sent_at[self._number] = time.monotonic()
        group = self._audio.create_group(self._number)
        group.write_frame(self._packets[self._number % len(self._packets)])
        group.finish()
        self._number += 1
