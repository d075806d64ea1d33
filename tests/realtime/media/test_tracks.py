"""The two tracks of a call, without a network."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from voiceapp.engines.sound import opus
from voiceapp.realtime.media.rtp import Packet
from voiceapp.realtime.media.tracks import (
    ALIVE_TICKS,
    DUCKED,
    LONGEST_FILL_MS,
    LONGEST_PAUSE_MS,
    TAIL_FRAMES,
    Microphone,
    Speaker,
)

LOUD = (np.sin(np.arange(24_000) / 10) * 8000).astype("<i2").tobytes()


def packets(count: int) -> list[bytes]:
    encoder = opus.Encoder()
    return [
        encoder.encode(LOUD[at : at + opus.FRAME_BYTES]) for at in range(0, count * opus.FRAME_BYTES, opus.FRAME_BYTES)
    ]


class Caller:
    def __init__(self) -> None:
        self.heard = b""
        self.asked: list[int] = []
        self.microphone = Microphone(self._hear, self.asked.extend)
        self.now = 0.0

    def _hear(self, pcm: bytes) -> None:
        self.heard += pcm

    def send(self, number: int, payload: bytes, *, timestamp: int | None = None, ssrc: int = 1) -> None:
        at = number * 960 if timestamp is None else timestamp
        self.microphone.receive(Packet(111, number, at, ssrc, payload), self.now)
        self.now += 0.02

    @property
    def heard_ms(self) -> float:
        return len(self.heard) / 32


def test_what_is_sent_is_heard_at_once() -> None:
    caller = Caller()
    for number, payload in enumerate(packets(10)):
        caller.send(number, payload)
        assert caller.heard_ms == (number + 1) * 20


def test_a_lost_packet_costs_no_time() -> None:
    caller = Caller()
    for number, payload in enumerate(packets(20)):
        if number != 10:
            caller.send(number, payload)
    assert caller.heard_ms == 400
    at = 10 * 640
    assert np.abs(np.frombuffer(caller.heard[at : at + 640], dtype="<i2")).max() > 1000


def test_a_pause_that_was_not_sent_is_heard_as_silence() -> None:
    caller = Caller()
    sent = packets(2)
    caller.send(1, sent[0], timestamp=0)
    caller.send(2, sent[1], timestamp=960 + 48 * 400)
    assert caller.heard_ms == 20 + 400 + 20
    caller.send(3, sent[1], timestamp=960 * 2 + 48 * 400 + 48 * 60_000)
    assert caller.heard_ms == 460 + LONGEST_PAUSE_MS


def test_another_source_is_another_stream() -> None:
    caller = Caller()
    for number, payload in enumerate(packets(3)):
        caller.send(number, payload)
    for number, payload in enumerate(packets(3)):
        caller.send(40_000 + number, payload, timestamp=number * 960, ssrc=2)
    assert caller.heard_ms == 120


def test_rubbish_is_concealed_and_a_flood_is_not_decoded() -> None:
    caller = Caller()
    sent = packets(3)
    caller.send(0, sent[0])
    caller.send(1, b"\xff\xff\xff")
    caller.send(2, sent[2])
    assert caller.heard_ms == 60
    for number in range(3, 3000):
        caller.microphone.receive(Packet(111, number, number * 960, 1, sent[0]), caller.now)
    assert caller.heard_ms < 20 * 500


def taken(speaker: Speaker, ticks: int) -> list[bool | None]:
    """Per tick: None for no packet, else the packet's marker."""
    found = [speaker.take() for _ in range(ticks)]
    return [None if each is None else each[1] for each in found]


def test_speech_is_marked_where_it_begins_and_ends_in_silence() -> None:
    speaker = Speaker()
    speaker.push(LOUD[: opus.FRAME_BYTES * 3 + 100])
    assert taken(speaker, 4) == [True, False, False, False]
    assert taken(speaker, TAIL_FRAMES) == [False] * TAIL_FRAMES
    quiet = taken(speaker, ALIVE_TICKS * 10)
    assert quiet.count(False) == 10
    assert quiet.count(None) == ALIVE_TICKS * 10 - 10
    speaker.push(LOUD)
    assert taken(speaker, 1) == [True]


def test_a_fresh_track_sends_next_to_nothing() -> None:
    assert taken(Speaker(), 100).count(False) == 5


def test_cutting_leaves_a_fade_and_no_step() -> None:
    speaker, decoder = Speaker(), opus.Decoder()
    speaker.push(LOUD)
    for _ in range(5):
        packet = speaker.take()
        assert packet is not None
        decoder.decode(packet[0])
    speaker.cut()
    assert speaker.queued_ms <= 5
    rest = [speaker.take() for _ in range(5)]
    heard = [np.frombuffer(decoder.decode(packet[0]), dtype="<i2") for packet in rest if packet]
    assert np.abs(heard[0]).max() > 500
    assert np.abs(heard[-1]).max() < 50


def loudness_of(speaker: Speaker, ticks: int) -> list[float]:
    decoder = opus.Decoder()
    packets = [speaker.take() for _ in range(ticks)]
    return [float(np.abs(np.frombuffer(decoder.decode(each[0]), dtype="<i2")).mean()) for each in packets if each]


def test_a_ducked_reply_is_quiet_until_it_is_restored_or_cut() -> None:
    speaker = Speaker()
    speaker.push(LOUD)
    loud = loudness_of(speaker, 5)[-1]
    speaker.duck(is_on=True)
    assert loudness_of(speaker, 5)[-1] == pytest.approx(loud * DUCKED, rel=0.2)
    speaker.duck(is_on=False)
    assert loudness_of(speaker, 5)[-1] == pytest.approx(loud, rel=0.2)
    speaker.duck(is_on=True)
    speaker.cut()
    speaker.push(LOUD[: opus.FRAME_BYTES * 10])
    assert loudness_of(speaker, 5)[-1] == pytest.approx(loud, rel=0.2)


async def test_waiting_for_the_end_ends_with_the_silence_after_the_last_packet() -> None:
    speaker = Speaker()
    await speaker.wait_empty()
    speaker.push(LOUD[: opus.FRAME_BYTES])
    assert speaker.queued_ms == 20
    end = asyncio.create_task(speaker.wait_empty())
    for _ in range(TAIL_FRAMES):
        speaker.take()
        await asyncio.sleep(0)
    assert not end.done()
    speaker.take()
    await end


def test_what_is_lost_is_asked_for_and_taken_late() -> None:
    caller = Caller()
    sent = packets(20)
    for number in (*range(10), 11, 12, 13, 10, 14):
        caller.send(number, sent[number])
    assert caller.asked == [10]
    assert caller.heard_ms == 300


def test_silence_goes_on_when_nothing_comes() -> None:
    caller = Caller()
    for number, payload in enumerate(packets(10)):
        caller.send(number, payload)
    for _ in range(50):
        caller.microphone.pass_time(20, caller.now)
        caller.now += 0.02
    silence_ms = caller.heard_ms - 200
    assert 700 < silence_ms < 800
    caller.send(10, packets(1)[0], timestamp=960 * 60)  # a second later by its own clock
    assert caller.heard_ms == 200 + 1000 + 20
    for _ in range(1000):
        caller.microphone.pass_time(20, caller.now)
        caller.now += 0.02
    assert caller.heard_ms == 1220 + LONGEST_FILL_MS
