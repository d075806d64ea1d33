"""Formats, framing and the leaky bucket."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import (
    FRAME_SAMPLES,
    AudioFormat,
    Framer,
    Meter,
    read_format,
    split_wav_header,
    to_float,
    wav_header,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("pcm", AudioFormat("pcm", 16_000)),
        ("pcm16", AudioFormat("pcm16", 16_000)),
        ("pcm24", AudioFormat("pcm24", 24_000)),
        ("wav", AudioFormat("wav", 16_000)),
        ({"type": "pcm", "sample_rate": 8_000}, AudioFormat("pcm", 8_000)),
        ({"type": "pcm", "sample_rate": 48_000}, AudioFormat("pcm", 48_000)),
        ({"type": "audio/pcm", "rate": 24_000}, AudioFormat("pcm", 24_000)),
        ({"sample_rate": 24_000}, AudioFormat("pcm", 24_000)),
        ({"type": "wav", "sample_rate": None}, AudioFormat("wav", 16_000)),
        ({}, AudioFormat("pcm", 16_000)),
    ],
)
def test_it_reads_flat_and_nested_formats(value: object, expected: AudioFormat) -> None:
    assert read_format(value, param="f", default_rate_hz=16_000) == expected


@pytest.mark.parametrize(
    "value", ["mp3", "g711", "", 5, None, ["pcm"], {"type": 5}, {"type": "opus"}, {"sample_rate": 11_025}]
)
def test_it_refuses_unknown_formats(value: object) -> None:
    with pytest.raises(InvalidParameter):
        read_format(value, param="f", default_rate_hz=16_000)


@pytest.mark.parametrize("rate", [True, "16000", 16_000.5, -1, [16_000]])
def test_it_refuses_rates_that_are_none(rate: object) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_format({"type": "pcm", "sample_rate": rate}, param="f", default_rate_hz=16_000)
    assert refused.value.param == "f.sample_rate"


def test_it_measures_in_whole_samples() -> None:
    audio_format = AudioFormat("pcm16", 24_000)
    assert audio_format.size(100) == 4800
    assert audio_format.size(0.03) == 0
    assert audio_format.duration_ms(4800) == 100


def test_a_wav_header_opens_as_a_wav_file() -> None:
    samples = np.arange(2000, dtype="<i2").tobytes()
    data = wav_header(24_000) + samples
    with wave.open(io.BytesIO(data)) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, 24_000)
    assert split_wav_header(data) == (24_000, samples)


def test_it_finds_the_audio_of_a_file_that_another_program_wrote() -> None:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, 8_000, 0, "NONE", ""))
        sound.writeframes(b"\x01\x00\x02\x00")
    assert split_wav_header(file.getvalue()) == (8_000, b"\x01\x00\x02\x00")


def test_it_leaves_bare_audio_alone() -> None:
    assert split_wav_header(b"\x00\x01" * 50) == (None, b"\x00\x01" * 50)


def test_it_refuses_stereo() -> None:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((2, 2, 8_000, 0, "NONE", ""))
        sound.writeframes(b"\x01\x00\x02\x00")
    with pytest.raises(InvalidParameter, match="mono"):
        split_wav_header(file.getvalue())


def test_it_refuses_a_header_without_audio() -> None:
    with pytest.raises(InvalidParameter, match="data chunk"):
        split_wav_header(wav_header(24_000)[:30])


@given(st.binary(max_size=100))
def test_any_bytes_after_riff_are_read_or_refused(rest: bytes) -> None:
    try:
        rate, data = split_wav_header(b"RIFF1234WAVE" + rest)
    except InvalidParameter:
        return
    assert data == b"" or rest.endswith(data)
    assert rate is None or rate >= 0


@given(st.lists(st.integers(0, 2000), max_size=20))
def test_frames_are_whole_and_nothing_is_lost(sizes: list[int]) -> None:
    framer = Framer()
    whole = np.arange(sum(sizes), dtype=np.float32)
    frames, position = [], 0
    for size in sizes:
        frames += framer.push(whole[position : position + size])
        position += size
    frames += framer.flush()
    assert all(len(frame) == FRAME_SAMPLES for frame in frames)
    joined = np.concatenate(frames) if frames else np.zeros(0, dtype=np.float32)
    assert np.array_equal(joined[: len(whole)], whole)
    assert not joined[len(whole) :].any()
    assert len(joined) - len(whole) < FRAME_SAMPLES
    assert framer.flush() == []


def test_int16_becomes_float_between_minus_one_and_one() -> None:
    assert to_float(b"\x00\x80\xff\x7f\x00\x00").tolist() == [-1.0, 32767 / 32768, 0.0]


def test_a_meter_allows_the_rate_for_ever() -> None:
    meter = Meter(rate_per_s=2000)
    assert all(meter.accept(40, second / 50) for second in range(2000))


def test_a_meter_allows_a_burst_and_refuses_more() -> None:
    meter = Meter(rate_per_s=2000)
    assert meter.accept(20_000, 5.0)
    assert not meter.accept(1, 5.0)
    assert meter.accept(1, 6.0)


def test_a_meter_refuses_a_sender_who_stays_above_the_rate() -> None:
    meter = Meter(rate_per_s=2000)
    refused_at = next(second for second in range(60) if not meter.accept(3000, float(second)))
    assert 15 <= refused_at <= 20


def test_a_meter_takes_no_credit_for_silence() -> None:
    meter = Meter(rate_per_s=2000)
    assert meter.accept(1, 0.0)
    assert not meter.accept(20_001, 1000.0)
