"""Tasks over AOQ: their messages on the data track, what they recognise on the caller's audio track."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from voiceapp.protocol.run_task import RunTaskError
from voiceapp.protocol.wire.reading import EventError, JsonObject
from voiceapp.realtime.aoq.tracks import READY, AoqTracks
from voiceapp.realtime.transports.interface import json_text


class AoqConnection:
    """The tracks of a connection as a `TaskConnection`."""

    def __init__(self, tracks: AoqTracks) -> None:
        self._tracks = tracks

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Tell the caller that tasks can begin. Raises what `AoqTracks.open` raises."""
        async with self._tracks.open(speaks=False):
            await self.say({"type": READY})
            self._tracks.leg.listen()
            yield

    async def receive(self) -> str | bytes:
        try:
            return await self._tracks.arrivals.take()
        except EventError as refused:
            raise RunTaskError(refused.message, code=refused.code) from None

    async def gone(self) -> int:
        return await self._tracks.wait_gone()

    async def say(self, message: JsonObject) -> None:
        await self._tracks.write(json_text(message))

    async def close(self, code: int, reason: str) -> None:
        await self._tracks.close(code, reason)
