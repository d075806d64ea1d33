"""The tracks of an AOQ connection, both ways: messages on the data track, sound on the audio track.

Both sides subscribe to the other's tracks. Then the caller sends `{"type": "ready"}` until it is told something: a
subscription starts behind what was written before it, so this server writes nothing earlier.
The last object is `{"type": "close", "code": …, "reason": …}`: the caller then closes the connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from voiceapp.engines.sound import opus
from voiceapp.errors import FloodError
from voiceapp.protocol.audio import Meter
from voiceapp.realtime.aoq.moq_adapter import ConnectionLost, MoqConnection
from voiceapp.realtime.close_codes import ABANDONED, GOES_ON_ELSEWHERE
from voiceapp.realtime.media import rtp
from voiceapp.realtime.media.arrivals import Arrivals
from voiceapp.realtime.media.leg import MediaLeg
from voiceapp.realtime.media.tracks import PACKETS_PER_S, TICKS_PER_PACKET
from voiceapp.realtime.transports.limits import MAX_MESSAGE_BYTES, MAX_UNSENT_BYTES, SLOW_READER_S

START_S = 5.0
"""Time that a connected caller has to subscribe and to say that it is ready."""
LOOK_AFTER_BYTES = 64 * 1024
"""Bytes that are written between looks at how much of them has left."""
LOOK_S = 0.1
GOODBYE_S = 2.0
"""Time that the caller has to close the connection, which browsers survive better than being closed."""
GONE = 1001
"""The caller closed the connection (RFC 6455, 7.4.1, has the word for it)."""
LOOK_TICKS = 25
"""Ticks of 20 ms between two looks whether the caller is there."""
READY, CLOSE = "ready", "close"
MAX_READY_BYTES = 200


class AoqSink:
    """The audio tracks of a connection as the `PacketSink` of a media leg: the number of a group is that of its frame,
    20 ms each."""

    def __init__(self, connection: MoqConnection, *, speaks: bool) -> None:
        self._connection = connection
        self._speaks = speaks
        self._number = 0
        self._ticks = 0
        self.signs_of_life = 0

    def pass_time(self, ticks: int) -> None:
        self._number += ticks // TICKS_PER_PACKET

    def send(self, payload: bytes, *, marker: bool) -> None:
        if self._speaks:
            with suppress(ConnectionLost):  # the watcher of the connection says so
                self._connection.send_packet(self._number, payload)

    def ask(self, numbers: list[int]) -> None:
        """QUIC sends lost packets again by itself."""

    def report(self) -> None:
        self._ticks += 1
        if self._ticks % LOOK_TICKS == 0:
            self.signs_of_life = self._connection.packets_received


class AoqTracks:
    """Tracks of an accepted connection."""

    def __init__(self, connection: MoqConnection) -> None:
        self._connection = connection
        self.arrivals = Arrivals()
        self.leg = MediaLeg(self.arrivals.hear, lambda: self._lost(ABANDONED))
        self._meter = Meter(rate_per_s=PACKETS_PER_S, window_s=1.0)
        self._now = asyncio.get_running_loop().time
        self._ready = asyncio.Event()
        self._gone = asyncio.Event()
        self._code = ABANDONED
        """Close code with which the caller left."""
        self._written_bytes = 0
        self._is_slow = False

    @asynccontextmanager
    async def open(self, *, speaks: bool = True) -> AsyncIterator[None]:
        """Subscribe, and read until the end of the block, which begins when the caller is ready.

        Where this server has nothing to say aloud (`speaks`), it sends no silence either.

        Raises:
            TimeoutError: the caller does not subscribe, or never says that it is ready.
            ConnectionLost: the caller is gone.
        """
        tasks = [asyncio.create_task(self._watch(), name="AOQ connection")]
        try:
            async with asyncio.timeout(START_S):
                await self._connection.subscribe()
                tasks.append(asyncio.create_task(self._read_events(), name="AOQ data track"))
                tasks.append(asyncio.create_task(self._read_packets(), name="AOQ audio track"))
                await self._ready.wait()
            if self._gone.is_set():
                raise ConnectionLost(None)
            self.leg.connect(AoqSink(self._connection, speaks=speaks))
            yield
        finally:
            self.leg.disconnect()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read_events(self) -> None:
        with suppress(ConnectionLost):
            async for payload in self._connection.events():
                if is_ready(payload):
                    self._ready.set()
                elif len(payload) > MAX_MESSAGE_BYTES:
                    self._flooded(FloodError("A message is too large.", code="message_too_large"))
                    return
                else:
                    await self.arrivals.wait_room()
                    self.arrivals.message(_text(payload))

    async def _read_packets(self) -> None:
        with suppress(ConnectionLost):
            async for number, payload in self._connection.packets():
                if len(payload) > opus.MAX_PACKET_BYTES:
                    continue
                if not self._meter.accept(1, self._now()):
                    message = f"More than {PACKETS_PER_S} objects a second on the audio track."
                    self._flooded(FloodError(message, code="too_much_audio"))
                    return
                timestamp = number * TICKS_PER_PACKET % rtp.TIMESTAMPS
                self.leg.receive(rtp.Packet(0, number % rtp.SEQUENCES, timestamp, 0, payload))

    def _flooded(self, error: FloodError) -> None:
        self._ready.set()
        self.arrivals.flooded(error)

    async def _watch(self) -> None:
        lost = await self._connection.wait_closed()
        self._lost(ABANDONED if lost.code in (None, GOES_ON_ELSEWHERE) else GONE)

    async def wait_gone(self) -> int:
        """Return the close code when the caller is gone."""
        await self._gone.wait()
        return self._code

    def _lost(self, code: int) -> None:
        if not self._gone.is_set():
            self._code = code
            self._gone.set()
            self.leg.stop_listening()
            self.arrivals.lost(code)
            self._ready.set()

    # ── What goes ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def write(self, text: str) -> None:
        """Write a message; waits while the caller reads slowly.

        Raises:
            FloodError: the caller reads too slowly to go on.
        """
        if self._gone.is_set() or self._is_slow:
            return
        message = text.encode()
        self._written_bytes += len(message)
        if self._written_bytes > LOOK_AFTER_BYTES:
            self._written_bytes = 0
            await self._wait_sent()
        with suppress(ConnectionLost):
            self._connection.send_event(message)

    async def _wait_sent(self) -> None:
        """While more is unsent than may be. The library does not tell when it has sent something."""
        try:
            async with asyncio.timeout(SLOW_READER_S):
                while not self._gone.is_set() and self._connection.unsent_bytes > MAX_UNSENT_BYTES:  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            self._is_slow = True
            raise FloodError("The connection is too slow for this conversation.", code="too_slow") from None

    async def close(self, code: int, reason: str, *, played_s: float = 0.0) -> None:
        """Say that it is over, and close; what was not played yet is played before, for `played_s` at most."""
        if played_s:
            await self._until_gone(self.leg.wait_played(), played_s)
        self.leg.stop_listening()
        if not self._gone.is_set():
            goodbye = json.dumps({"type": CLOSE, "code": code, "reason": reason})
            with suppress(ConnectionLost):
                self._connection.send_event(goodbye.encode())
            await self._until_gone(asyncio.Event().wait(), GOODBYE_S)
        self._connection.close(code)

    async def _until_gone(self, done: Coroutine[Any, Any, object], patience_s: float) -> None:
        """Wait for something, for so long at most, and no longer than the caller is there."""
        waits = [asyncio.create_task(done), asyncio.create_task(self._gone.wait())]
        try:
            await asyncio.wait(waits, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def is_ready(payload: bytes) -> bool:
    """Return whether an object of the data track says that its sender can be written to."""
    if len(payload) > MAX_READY_BYTES or READY.encode() not in payload:
        return False
    try:
        found = json.loads(payload)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("type") == READY


def _text(payload: bytes) -> str | bytes:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return payload
