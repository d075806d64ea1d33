"""Incoming audio of every accepted format, as the engines want it."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.engines.tones import HZ, pitch_hz, tone
from voiceapp.engines.interfaces import Samples
from voiceapp.engines.sound.resampling import InputConverter
from voiceapp.errors import InvalidParameter
from voiceapp.protocol import g711
from voiceapp.protocol.audio import SAMPLE_RATES_HZ, AudioFormat, wav_header


def in_pieces(converter: InputConverter, pcm: bytes, size: int) -> Samples:
    pieces = [converter.convert(pcm[start : start + size]) for start in range(0, len(pcm), size)]
    return np.concatenate([*pieces, converter.flush()])


@pytest.mark.parametrize("rate_hz", SAMPLE_RATES_HZ)
def test_a_second_stays_a_second_of_the_same_pitch(rate_hz: int) -> None:
    heard = in_pieces(InputConverter(AudioFormat("pcm", rate_hz)), tone(1, rate_hz), 640)

    assert heard.dtype == np.float32
    assert len(heard) == pytest.approx(16_000, abs=40)
    assert pitch_hz(heard) == pytest.approx(HZ, abs=2)
    assert np.abs(heard[2000:-2000]).max() == pytest.approx(8_000 / 32_768, rel=0.03)


@pytest.mark.parametrize("rate_hz", SAMPLE_RATES_HZ)
def test_pieces_sound_like_the_whole(rate_hz: int) -> None:
    pcm = tone(1, rate_hz)

    whole = in_pieces(InputConverter(AudioFormat("pcm", rate_hz)), pcm, len(pcm))
    pieces = in_pieces(InputConverter(AudioFormat("pcm", rate_hz)), pcm, 170)

    assert len(whole) == pytest.approx(len(pieces), abs=2)
    count = min(len(whole), len(pieces))
    assert np.abs(whole[:count] - pieces[:count]).max() < 1e-3


def test_a_wav_header_sets_the_rate() -> None:
    converter = InputConverter(AudioFormat("wav", 16_000))

    heard = np.concatenate((converter.convert(wav_header(48_000) + tone(1, 48_000)), converter.flush()))

    assert len(heard) == pytest.approx(16_000, abs=40)
    assert pitch_hz(heard) == pytest.approx(HZ, abs=2)


@pytest.mark.parametrize(
    ("audio", "message"),
    [
        (b"abc", "even number"),
        (wav_header(16_000)[:20] + struct.pack("<HH", 1, 2) + wav_header(16_000)[24:], "mono 16-bit"),
        (wav_header(16_000)[:24] + struct.pack("<I", 1_000_000) + wav_header(16_000)[28:], "1000000 Hz"),
    ],
)
def test_other_audio_is_refused_with_the_reason(audio: bytes, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        InputConverter(AudioFormat("wav", 16_000)).convert(audio)


@pytest.mark.parametrize("rate_hz", SAMPLE_RATES_HZ)
def test_nothing_gives_nothing(rate_hz: int) -> None:
    converter = InputConverter(AudioFormat("pcm", rate_hz))

    assert len(converter.convert(b"")) == 0
    assert len(converter.flush()) == 0


@pytest.mark.parametrize("name", ["g711_ulaw", "g711_alaw"])
def test_telephone_sound_is_heard_at_its_pitch(name: str) -> None:
    heard = in_pieces(InputConverter(AudioFormat(name, 8_000)), g711.encoded(tone(1, 8_000), name), 161)

    assert len(heard) == pytest.approx(16_000, abs=40)
    assert pitch_hz(heard) == pytest.approx(HZ, abs=2)
    assert np.abs(heard[2000:-2000]).max() == pytest.approx(8_000 / 32_768, rel=0.05)
