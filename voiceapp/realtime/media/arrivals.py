"""Unread events and sound of a caller, which arrive on different channels: bounded, in order."""

from __future__ import annotations

import asyncio

from voiceapp.errors import FloodError
from voiceapp.protocol.audio import Meter
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.dialects import OWN, Dialect
from voiceapp.realtime.media.client_events import without_audio
from voiceapp.realtime.transports.interface import Disconnected
from voiceapp.realtime.transports.limits import MAX_UNREAD_BYTES, MAX_UNREAD_EVENTS, MESSAGES_PER_S


class Arrivals:
    """A queue of messages and of heard PCM, read by `receive`. Belongs to one event loop."""

    def __init__(self, dialect: Dialect = OWN) -> None:
        self._dialect = dialect
        self._queue: asyncio.Queue[str | bytes | Exception] = asyncio.Queue()
        self._now = asyncio.get_running_loop().time
        self._meter = Meter(rate_per_s=MESSAGES_PER_S)
        self._waiting_texts = 0
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._is_flooded = False

    async def receive(self) -> ev.ClientEvent:
        """The next event; heard PCM comes as `AudioAppend`. Raises what `Transport.receive` raises."""
        while (event := await self._next()) is None:
            pass
        return event

    async def take(self) -> str | bytes:
        """The next message as it came, or heard PCM. Raises what `Transport.receive` raises."""
        arrival = await self._queue.get()
        if isinstance(arrival, Exception):
            raise arrival
        if isinstance(arrival, str):
            self._waiting_texts -= 1
            self._waiting_bytes -= len(arrival)
            self._room.set()
        return arrival

    async def _next(self) -> ev.ClientEvent | None:
        arrival = await self.take()
        if isinstance(arrival, bytes):
            return ev.AudioAppend(audio=arrival)
        event = self._dialect.read(arrival)
        return None if event is None else without_audio(event)

    async def wait_room(self) -> None:
        """Wait until there is room for a message of any length, where its sender can be kept waiting."""
        while self._waiting_bytes > MAX_UNREAD_BYTES // 2:
            self._room.clear()
            await self._room.wait()

    def message(self, message: str | bytes) -> None:
        """A message came. Too many of them end the session; what comes after that is not read."""
        if self._is_flooded:
            return
        is_full = self._waiting_texts >= MAX_UNREAD_EVENTS or self._waiting_bytes + len(message) > MAX_UNREAD_BYTES
        if not self._meter.accept(1, self._now()) or is_full:
            self.flooded(FloodError(f"More than {MESSAGES_PER_S} messages a second.", code="too_many_messages"))
        elif isinstance(message, bytes):
            self._queue.put_nowait(
                ev.EventError("Send JSON text: binary messages are not understood.", code="invalid_frame")
            )
        else:
            self._waiting_texts += 1
            self._waiting_bytes += len(message)
            self._queue.put_nowait(message)

    def hear(self, pcm: bytes) -> None:
        """Mono int16 PCM came; dropped while a second of messages waits to be read."""
        if self._queue.qsize() < MAX_UNREAD_EVENTS:
            self._queue.put_nowait(pcm)

    def flooded(self, error: FloodError) -> None:
        """The caller sends more than is allowed. Said once: what comes behind it is not read."""
        if not self._is_flooded:
            self._is_flooded = True
            self._queue.put_nowait(error)

    def lost(self, code: int) -> None:
        self._queue.put_nowait(Disconnected(code))
