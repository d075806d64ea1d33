"""The audio of one session: what the caller says to PCM, the response's PCM to packets, and when a caller is gone.

A transport that carries media packets (RTP of a peer connection, objects of an AOQ track) gives its packets to a
`MediaLeg` and is the `PacketSink` that the leg sends by. The session tells the leg when to fall silent (`PlayoutCut`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from voiceapp.engines.sound import opus
from voiceapp.realtime.media import rtp
from voiceapp.realtime.media.ticker import PERIOD_S, ticker
from voiceapp.realtime.media.tracks import TICKS_PER_PACKET, Microphone, Speaker

SILENT_S = 3.5
"""Nothing at all from a caller for this long, not even a reply to a check of consent each second: gone without a word,
and treated so within 5 s."""
STALL_PERIODS = 5
"""More of them at once are this server's own silence, not the caller's."""


class PacketSink(Protocol):
    """The packets of one session's audio, both ways."""

    @property
    def signs_of_life(self) -> int:
        """Counts what comes from the caller; stands still when the caller is gone."""

    def pass_time(self, ticks: int) -> None:
        """The media clock moves on by so many ticks of 48 kHz, whether or not anything is sent."""

    def send(self, payload: bytes, *, marker: bool) -> None:
        """Send one Opus packet; `marker` is set on the first one after silence."""

    def ask(self, numbers: list[int]) -> None:
        """Ask the caller to send these packets again, where that is possible."""

    def report(self) -> None:
        """Called once per tick: send control packets when they are due."""


class MediaLeg:
    """One session's microphone, speaker and media clock. Belongs to one event loop."""

    def __init__(self, hear: Callable[[bytes], None], vanished: Callable[[], None]) -> None:
        """`hear` is given mono int16 PCM at 16 kHz; `vanished` is called when nothing has come for `SILENT_S`."""
        self._vanished = vanished
        self._now = asyncio.get_running_loop().time
        self._sink: PacketSink | None = None
        self._microphone = Microphone(hear, self._ask)
        self._speaker = Speaker()
        self._is_listening = False
        self._is_watching = False
        self._signs_seen = 0
        self._silent_ticks = 0

    def connect(self, sink: PacketSink) -> None:
        """Send by this sink from the next tick on."""
        self._sink = sink
        ticker().join(self._tick)

    def listen(self) -> None:
        """The session has begun: hand on what the caller says. What came before is dropped."""
        self._is_listening = True

    def watch(self) -> None:
        """The caller is there: notice when nothing comes any more."""
        self._is_watching = True

    def receive(self, packet: rtp.Packet) -> None:
        if self._is_listening:
            self._microphone.receive(packet, self._now())

    def play(self, pcm: bytes) -> None:
        """Play mono int16 PCM at 24 kHz after everything before it."""
        self._speaker.push(pcm)

    def duck(self, *, is_on: bool) -> None:
        """Play quietly, or as loud as before; a cut ends it too."""
        self._speaker.duck(is_on=is_on)

    def cut(self) -> None:
        """Fall silent now: what was not sent is dropped."""
        self._speaker.cut()

    async def wait_played(self) -> None:
        """Return when everything was sent."""
        await self._speaker.wait_empty()

    def stop_listening(self) -> None:
        """The caller is gone or leaves: what still comes is dropped, and silence means nothing."""
        self._is_listening = self._is_watching = False

    def disconnect(self) -> None:
        """Leave the media clock; harmless when that was done."""
        ticker().leave(self._tick)

    def _ask(self, numbers: list[int]) -> None:
        if self._sink is not None:
            self._sink.ask(numbers)

    def _tick(self, periods: int) -> None:
        sink = self._sink
        assert sink is not None
        sink.pass_time(TICKS_PER_PACKET * periods)
        if self._is_listening:
            self._microphone.pass_time(opus.FRAME_MS * periods, self._now())
        if (packet := self._speaker.take()) is not None:
            sink.send(packet[0], marker=packet[1])
        sink.report()
        if sink.signs_of_life != self._signs_seen:
            self._signs_seen, self._silent_ticks = sink.signs_of_life, 0
        elif self._is_watching:
            self._silent_ticks += min(periods, STALL_PERIODS)
            if self._silent_ticks * PERIOD_S > SILENT_S:
                self._vanished()
