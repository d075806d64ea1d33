"""Backpressure under Twisted: what writes to a connection waits until the client has taken what was written before."""

from __future__ import annotations

import asyncio


class Flow:
    """Told by the transport when its buffer is full and when it has drained; `send` waits on it."""

    def __init__(self) -> None:
        self.paused = False
        self._drained: asyncio.Future[None] | None = None

    def pauseProducing(self) -> None:
        self.paused = True

    def resumeProducing(self) -> None:
        self.paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def stopProducing(self) -> None:
        self.resumeProducing()

    async def drained(self) -> None:
        while self.paused:
            if self._drained is None or self._drained.done():
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)
