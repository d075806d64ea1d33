"""Compressed sound that comes in pieces is heard as it comes, and what is no sound is refused."""

from __future__ import annotations

import numpy as np
import pytest

from voiceapp.engines.sound_files import SoundWriter
from voiceapp.engines.sound_streams import stream_of
from voiceapp.errors import InvalidParameter

TONE_HZ = 440


def tone(seconds: int = 2) -> bytes:
    at = np.arange(seconds * 16_000) / 16_000
    return bytes((np.sin(2 * np.pi * TONE_HZ * at) * 12_000).astype("<i2").tobytes())


@pytest.mark.parametrize("kind", ["mp3", "aac", "opus"])
@pytest.mark.parametrize("size", [7, 700, 100_000])
def test_a_tone_is_the_same_tone_however_it_is_cut(kind: str, size: int) -> None:
    writer = SoundWriter(kind, 16_000)
    data = writer.feed(tone()) + writer.finish()
    stream = stream_of(kind)
    assert stream is not None
    heard = np.frombuffer(b"".join(stream.feed(data[at : at + size]) for at in range(0, len(data), size)), "<i2")

    assert abs(len(heard) - 32_000) < 2_000
    assert np.argmax(np.abs(np.fft.rfft(heard[4_000:20_000]))) == TONE_HZ


@pytest.mark.parametrize("kind", ["mp3", "aac", "opus"])
def test_what_is_no_sound_is_refused(kind: str) -> None:
    stream = stream_of(kind)
    assert stream is not None
    with pytest.raises(InvalidParameter, match="cannot be read"):
        stream.feed(np.random.default_rng(1).bytes(100_000))


def test_pcm_needs_no_decoding_and_other_formats_are_named() -> None:
    assert stream_of("pcm") is stream_of("wav") is None
    with pytest.raises(InvalidParameter, match="pcm, wav, mp3, aac, opus"):
        stream_of("amr")
