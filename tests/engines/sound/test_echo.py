"""Echo of what was played: found where there is one, taken out, and nothing changed where there is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.engines.rooms import Room, Sentence, Visit, room_response
from tests.engines.speech import SENTENCES, spoken
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.engines.sound.echo import Cleaned, EchoFilter
from voiceapp.engines.sound.echo_finder import loudness
from voiceapp.engines.sound.played_sound import LATE_CHUNKS, MicrophoneClock, PlayedSound
from voiceapp.protocol.audio import AudioFormat, to_pcm16
from voiceapp.protocol.configuration import EchoCancellation
from voiceapp.protocol.states import EchoRisk
from voiceapp.protocol.wire import events as ev

CHUNK = ENGINE_SAMPLE_RATE_HZ // 50
FORMAT = AudioFormat("pcm", ENGINE_SAMPLE_RATE_HZ)
NOON = 43_200.0


def babble(seconds: float, seed: int) -> Samples:
    """Noise that comes in syllables, at a pace of its own."""
    count = int(seconds * ENGINE_SAMPLE_RATE_HZ)
    noise = np.random.default_rng(seed).normal(0, 0.1, count)
    syllables = np.clip(np.sin(np.arange(count) * 2 * np.pi * (3 + seed) / ENGINE_SAMPLE_RATE_HZ), 0, 1)
    return (noise * syllables).astype(np.float32)


def echo_of(played: Samples, *, delay_ms: int, level_db: float) -> Samples:
    delayed = np.concatenate((np.zeros(delay_ms * 16, dtype=np.float32), played))[: len(played)]
    echo = np.convolve(delayed, room_response(5))[: len(played)] * 10 ** (level_db / 20)
    return echo.astype(np.float32)


def pieces_of(played: Samples, heard: Samples, mode: EchoCancellation = "auto") -> list[Cleaned]:
    """What comes out when `heard` arrives while `played` is heard, in real time."""
    sound = EchoFilter(mode)
    out: list[Cleaned] = []
    for start in range(0, len(heard), CHUNK):
        at = NOON + start / ENGINE_SAMPLE_RATE_HZ
        sound.play(to_pcm16(played[start : start + CHUNK]), FORMAT, response_id="resp_1", at=at)
        out.append(sound.clean(heard[start : start + CHUNK], at + CHUNK / ENGINE_SAMPLE_RATE_HZ))
    return [*out, sound.flush()]


def pass_through(played: Samples, heard: Samples, mode: EchoCancellation = "auto") -> Cleaned:
    out = pieces_of(played, heard, mode)
    return Cleaned(joined([each.to_detect for each in out]), joined([each.to_read for each in out]))


def joined(pieces: Sequence[Samples]) -> Samples:
    return np.concatenate(pieces)


@pytest.mark.parametrize(("delay_ms", "level_db"), [(60, -12), (180, -20), (400, -30)])
def test_an_echo_is_found_and_taken_out(delay_ms: int, level_db: float) -> None:
    played = babble(4.0, seed=1)
    heard = echo_of(played, delay_ms=delay_ms, level_db=level_db)
    cleaned = pass_through(played, heard)
    last = slice(3 * ENGINE_SAMPLE_RATE_HZ, None)
    assert loudness(cleaned.to_detect[last]) < loudness(heard[last]) * 0.2
    assert np.array_equal(cleaned.to_read, heard)


def test_a_headset_costs_nothing() -> None:
    played, said = babble(8.0, seed=1), babble(8.0, seed=2)
    cleaned = pass_through(played, said)
    last = slice(6 * ENGINE_SAMPLE_RATE_HZ, None)
    assert np.array_equal(cleaned.to_detect[last], said[last])
    assert np.array_equal(cleaned.to_read, said)


def test_a_microphone_that_hears_nothing_of_loud_sound_has_no_echo() -> None:
    played = babble(3.0, seed=1)
    said = np.concatenate((np.zeros(3 * ENGINE_SAMPLE_RATE_HZ // 2, dtype=np.float32), babble(1.5, seed=2)))
    risks = [piece.risk for piece in pieces_of(played, said)]
    assert risks[0] is EchoRisk.POSSIBLE
    assert set(risks[70:]) == {EchoRisk.NONE}  # 1.4 s


def test_a_microphone_that_hears_nothing_of_the_first_words_may_have_a_late_echo() -> None:
    played = babble(4.0, seed=1)
    heard = echo_of(played, delay_ms=550, level_db=-12)
    risks = [piece.risk for piece in pieces_of(played, heard)]
    assert EchoRisk.NONE not in risks[:40]  # 0.8 s
    assert EchoRisk.LIKELY in risks[:150]


def test_it_can_be_switched_off() -> None:
    played = babble(2.0, seed=1)
    heard = echo_of(played, delay_ms=100, level_db=-12)
    assert np.array_equal(pass_through(played, heard, "off").to_detect, heard)


def test_it_can_be_on_from_the_beginning() -> None:
    played = babble(2.0, seed=1)
    heard = echo_of(played, delay_ms=100, level_db=-12)
    cleaned = pass_through(played, heard, "on")
    assert len(cleaned.to_detect) == len(heard)
    assert loudness(cleaned.to_detect) < loudness(heard) * 0.5


def test_played_sound_goes_on_where_it_ended() -> None:
    played = PlayedSound()
    played.add(np.ones(160, dtype=np.float32), 10.0)
    played.add(np.full(160, 2, dtype=np.float32), 10.011)  # a rounding of the clock is no gap
    played.add(np.full(160, 3, dtype=np.float32), 11.0)
    assert played.ends_at == pytest.approx(11.01)
    assert played.between(160_000 - 80, 480).tolist() == [0] * 80 + [1] * 160 + [2] * 160 + [0] * 80
    assert played.between(176_000, 200).tolist() == [3] * 160 + [0] * 40


def test_a_new_response_replaces_what_is_not_heard_any_more() -> None:
    played = PlayedSound()
    played.add(np.ones(320, dtype=np.float32), 10.0)
    played.add(np.full(160, 2, dtype=np.float32), 9.5)  # before all that is known
    assert played.between(160_000, 200).tolist() == [2] * 160 + [0] * 40


def test_the_microphone_is_timed_by_what_travelled_fastest() -> None:
    clock = MicrophoneClock()
    assert clock.take(CHUNK, 10.05) == 160_480  # 30 ms late
    assert clock.take(CHUNK, 10.04) == 160_320
    assert clock.take(CHUNK, 10.09) == 160_640


def test_a_microphone_that_was_silent_is_timed_anew() -> None:
    clock = MicrophoneClock()
    clock.take(CHUNK, 10.02)
    for number in range(LATE_CHUNKS):
        clock.take(CHUNK, 20.02 + number * 0.02)
    assert clock.take(CHUNK, 20.02 + LATE_CHUNKS * 0.02) == 320_000 + LATE_CHUNKS * CHUNK


@pytest.mark.parametrize(("mode", "interruptions"), [("off", 1), ("auto", 0)])
@pytest.mark.usefixtures("models")
async def test_a_reply_does_not_interrupt_itself(espeak: Espeak, mode: EchoCancellation, interruptions: int) -> None:
    reply = [Sentence(text, await spoken(espeak, text)) for text in SENTENCES[:2]]
    happened = await Visit(reply, Room(echo_db=-12, delay_ms=180), mode=mode, engine_s=0.1).run()
    assert (happened.cancelled_at is not None) == bool(interruptions)
    assert len(happened.of(ev.SpeechStarted)) == interruptions
