"""A session's audio by any transport that carries packets: no connection, no network."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from voiceapp.engines.sound import opus
from voiceapp.realtime.media.leg import SILENT_S, STALL_PERIODS, MediaLeg
from voiceapp.realtime.media.rtp import Packet
from voiceapp.realtime.media.ticker import PERIOD_S, ticker
from voiceapp.realtime.media.tracks import TAIL_FRAMES, TICKS_PER_PACKET

LOUD = b"\x00\x20" * (opus.ENCODED_RATE_HZ // 10)


@dataclass
class Line:
    """A `PacketSink` that keeps what it is given."""

    signs_of_life: int = 0
    ticks: int = 0
    reports: int = 0
    sent: list[tuple[bytes, bool]] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)

    def pass_time(self, ticks: int) -> None:
        self.ticks += ticks

    def send(self, payload: bytes, *, marker: bool) -> None:
        self.sent.append((payload, marker))

    def ask(self, numbers: list[int]) -> None:
        self.asked += numbers

    def report(self) -> None:
        self.reports += 1


class Call:
    def __init__(self) -> None:
        self.heard = b""
        self.vanished = 0
        self.line = Line()
        self.leg = MediaLeg(self._hear, self._vanish)
        self.leg.connect(self.line)
        ticker().leave(self.leg._tick)  # the test turns the clock

    def _hear(self, pcm: bytes) -> None:
        self.heard += pcm

    def _vanish(self) -> None:
        self.vanished += 1

    def tick(self, times: int = 1, periods: int = 1) -> None:
        for _ in range(times):
            self.leg._tick(periods)

    def say(self, number: int) -> None:
        payload = opus.Encoder().encode(LOUD[: opus.FRAME_BYTES])
        self.leg.receive(Packet(111, number, number * TICKS_PER_PACKET, 1, payload))


@pytest.fixture
async def call() -> Call:
    return Call()


async def test_what_is_played_goes_out_one_packet_a_tick(call: Call) -> None:
    call.leg.play(LOUD)
    call.tick(5)
    assert [marker for _, marker in call.line.sent] == [True, False, False, False, False]
    assert (call.line.ticks, call.line.reports) == (5 * TICKS_PER_PACKET, 5)


async def test_a_cut_leaves_a_fade_and_silence(call: Call) -> None:
    call.leg.play(LOUD * 10)
    call.tick()
    call.leg.cut()
    call.tick(TAIL_FRAMES + 3)
    assert len(call.line.sent) == 1 + 1 + TAIL_FRAMES
    await call.leg.wait_played()


async def test_the_caller_is_heard_from_the_beginning_of_the_session(call: Call) -> None:
    call.say(1)
    assert not call.heard
    call.leg.listen()
    call.say(2)
    assert len(call.heard) == opus.DECODED_RATE_HZ // 50 * 2
    call.leg.stop_listening()
    call.say(3)
    call.tick()
    assert len(call.heard) == opus.DECODED_RATE_HZ // 50 * 2


async def test_lost_packets_are_asked_for(call: Call) -> None:
    call.leg.listen()
    for number in (1, 3, 4, 5):
        call.say(number)
    assert call.line.asked[:1] == [2]


async def test_a_caller_of_whom_nothing_comes_has_vanished(call: Call) -> None:
    ticks = int(SILENT_S / PERIOD_S)
    call.tick(ticks * 2)
    assert not call.vanished  # nobody is there yet
    call.leg.watch()
    call.tick(ticks)
    assert not call.vanished
    call.tick(2)
    assert call.vanished


async def test_any_sign_of_life_counts(call: Call) -> None:
    call.leg.watch()
    for _ in range(4):
        call.tick(int(SILENT_S / PERIOD_S) - 1)
        call.line.signs_of_life += 1
        call.tick()
    assert not call.vanished


async def test_time_that_this_server_lost_is_not_the_callers(call: Call) -> None:
    call.leg.watch()
    call.tick(periods=1000)
    assert not call.vanished
    assert int(SILENT_S / PERIOD_S) > STALL_PERIODS
