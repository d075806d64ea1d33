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
    Framer,
    Meter,
    read_format,
    split_wav_header,
    wav_header,
)


@pytest.mark.parametrize("rate", [True, "16000", 16_000.5, -1, [16_000]])
def test_it_refuses_rates_that_are_none(rate: object) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_format({"type": "pcm", "sample_rate": rate}, param="f", default_rate_hz=16_000)
    assert refused.value.param == "f.sample_rate"


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
