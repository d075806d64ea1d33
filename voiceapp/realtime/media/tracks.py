"""The two directions of a call's sound: packets of the caller to PCM, PCM of the answer to packets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np

from voiceapp.engines.sound import opus
from voiceapp.protocol.audio import Meter
from voiceapp.realtime.media import rtp

CLOCK_HZ = 48_000
"""The RTP clock of Opus, whatever rate is in it (RFC 7587, 4.1)."""
TICKS_PER_PACKET = CLOCK_HZ * opus.FRAME_MS // 1000
LONGEST_PAUSE_MS = 1000
"""Longest pause that the caller's encoder did not send; a longer one is heard as this long."""
FILL_AFTER_S = 0.25
LONGEST_FILL_MS = 7000
"""Silence heard while nothing comes: a caller who mutes the microphone has spoken to the end as well, however much
silence they asked for as the sign of it (6 s at most)."""
PACKETS_PER_S = 400
"""More than the shortest frames make (2.5 ms); beyond it, packets are not decoded."""
TAIL_FRAMES = 5
"""Silence sent after speech: it pushes the last words out of jitter buffers and lets a decoder end softly."""
ALIVE_TICKS = 20
"""In silence one packet in 400 ms, as an encoder does that stops in silence (RFC 7587, 3.1.3)."""
FADE_SAMPLES = opus.ENCODED_RATE_HZ * 5 // 1000
SILENCE = bytes(opus.FRAME_BYTES)
DUCKED = 0.35
"""Volume of a ducked reply: -9 dB. A client may make it quieter still, as the page does."""


class Microphone:
    """The caller's track: RTP packets in, mono int16 PCM at 16 kHz out; what is lost is asked for, or concealed."""

    def __init__(self, hear: Callable[[bytes], None], ask: Callable[[list[int]], None]) -> None:
        """`ask` is given the sequence numbers of packets to send again."""
        self._hear = hear
        self._ask = ask
        self._order = rtp.Order()
        self._decoder = opus.Decoder()
        self._meter = Meter(rate_per_s=PACKETS_PER_S, window_s=1.0)
        self._ssrc: int | None = None
        self._expected: int | None = None
        """Timestamp of the next packet if nothing is left out."""
        self._frame_ms = opus.FRAME_MS
        self._came_at = 0.0
        self._filled_ms = 0

    def receive(self, packet: rtp.Packet, now: float) -> None:
        """Take the next packet as it came; what can be heard now is handed on before this returns."""
        if not self._meter.accept(1, now):
            return
        if packet.ssrc != self._ssrc:  # a new stream, such as after the caller changed the microphone
            self._ssrc, self._order, self._expected = packet.ssrc, rtp.Order(), None
        self._came_at, self._filled_ms = now, 0
        for piece in self._order.push(packet):
            pcm = self._conceal(piece) if isinstance(piece, rtp.Lost) else self._decode(piece)
            if pcm:
                self._hear(pcm)
        if wanted := self._order.wanted():
            self._ask(wanted)

    def pass_time(self, milliseconds: int, now: float) -> None:
        """Hear silence for time in which nothing came."""
        if self._expected is None or now - self._came_at < FILL_AFTER_S or self._filled_ms >= LONGEST_FILL_MS:
            return
        self._filled_ms += milliseconds
        self._expected = (self._expected + milliseconds * CLOCK_HZ // 1000) % rtp.TIMESTAMPS
        self._hear(bytes(milliseconds * opus.DECODED_RATE_HZ // 1000 * 2))

    def _decode(self, packet: rtp.Packet) -> bytes:
        pause = self._pause_before(packet)
        if not packet.payload:
            return pause
        try:
            pcm = self._decoder.decode(packet.payload)
        except opus.OpusError:
            return pause + self._conceal(rtp.Lost(None))
        length = len(pcm) // 2 * (CLOCK_HZ // opus.DECODED_RATE_HZ)
        self._frame_ms = max(1, length * 1000 // CLOCK_HZ)
        self._expected = (packet.timestamp + length) % rtp.TIMESTAMPS
        return pause + pcm

    def _pause_before(self, packet: rtp.Packet) -> bytes:
        """Silence for the time that the caller's encoder saved (DTX): packets are in order, timestamps leap."""
        if self._expected is None:
            return b""
        missing = (packet.timestamp - self._expected) % rtp.TIMESTAMPS
        if missing >= rtp.TIMESTAMPS // 2:
            return b""
        missing_ms = min(LONGEST_PAUSE_MS, missing * 1000 // CLOCK_HZ)
        return bytes(missing_ms * opus.DECODED_RATE_HZ // 1000 * 2)

    def _conceal(self, lost: rtp.Lost) -> bytes:
        try:
            pcm = self._decoder.conceal(self._frame_ms, lost.following)
        except opus.OpusError:
            return b""
        if self._expected is not None:
            self._expected = (self._expected + self._frame_ms * CLOCK_HZ // 1000) % rtp.TIMESTAMPS
        return pcm


class Speaker:
    """The answer's track: mono int16 PCM at 24 kHz in, one Opus packet per tick out."""

    def __init__(self) -> None:
        self._encoder = opus.Encoder()
        self._queue = bytearray()
        self._gain = self._wanted_gain = 1.0
        self._quiet_ticks = TAIL_FRAMES + 1
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def queued_ms(self) -> float:
        return len(self._queue) / 2 * 1000 / opus.ENCODED_RATE_HZ

    def push(self, pcm: bytes) -> None:
        """Play this after everything pushed before."""
        self._queue += pcm
        if self._queue:
            self._empty.clear()

    def duck(self, *, is_on: bool) -> None:
        """Play quietly, or as loud as before, from the next packet on."""
        self._wanted_gain = DUCKED if is_on else 1.0

    def cut(self) -> None:
        """Forget what was not sent, but for a few milliseconds that fade out: a step would be heard as a click."""
        end = np.frombuffer(bytes(self._queue[: FADE_SAMPLES * 2]), dtype="<i2") * np.float32(self._gain)
        self._gain = self._wanted_gain = 1.0
        faded = end * np.linspace(1, 0, len(end), dtype=np.float32)
        self._queue = bytearray(faded.astype("<i2").tobytes())

    def take(self) -> tuple[bytes, bool] | None:
        """The next packet and whether speech begins with it; None while silence need not be sent."""
        if self._queue:
            pcm = bytes(self._queue[: opus.FRAME_BYTES])
            del self._queue[: opus.FRAME_BYTES]
            begins = self._quiet_ticks > TAIL_FRAMES
            self._quiet_ticks = 0
            return self._encoder.encode(self._shaped(pcm.ljust(opus.FRAME_BYTES, b"\0"))), begins
        self._gain = self._wanted_gain
        self._quiet_ticks += 1
        if self._quiet_ticks >= TAIL_FRAMES:
            self._empty.set()
        if self._quiet_ticks <= TAIL_FRAMES or not self._quiet_ticks % ALIVE_TICKS:
            return self._encoder.encode(SILENCE), False
        return None

    def _shaped(self, pcm: bytes) -> bytes:
        """The packet at the volume that is wanted, which it fades to."""
        before, self._gain = self._gain, self._wanted_gain
        if before == self._gain == 1.0:
            return pcm
        samples = np.frombuffer(pcm, dtype="<i2")
        return (samples * np.linspace(before, self._gain, len(samples), dtype=np.float32)).astype("<i2").tobytes()

    async def wait_empty(self) -> None:
        """Return when everything pushed was taken, and the silence that pushes it out of jitter buffers."""
        await self._empty.wait()
