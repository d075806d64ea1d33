"""Compressed sound that comes in pieces is heard as it comes, and what is no sound is refused."""

from __future__ import annotations

import io
from contextlib import suppress
from functools import cache

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.tones import HZ, tone
from voiceapp.engines.sound.sound_files import CODECS, SoundWriter
from voiceapp.engines.sound.sound_streams import stream_of
from voiceapp.errors import InvalidParameter


@pytest.mark.parametrize("kind", ["mp3", "aac", "opus"])
@pytest.mark.parametrize("size", [7, 700, 100_000])
def test_a_tone_is_the_same_tone_however_it_is_cut(kind: str, size: int) -> None:
    writer = SoundWriter(kind, 16_000)
    data = writer.feed(tone(2)) + writer.finish()
    stream = stream_of(kind)
    assert stream is not None
    heard = np.frombuffer(b"".join(stream.feed(data[at : at + size]) for at in range(0, len(data), size)), "<i2")

    assert abs(len(heard) - 32_000) < 2_000
    assert np.argmax(np.abs(np.fft.rfft(heard[4_000:20_000]))) == HZ


@cache
def encoded(kind: str, rate_hz: int, layout: str) -> bytes:
    container, codec = CODECS[kind]
    sink = io.BytesIO()
    with av.open(sink, "w", format=container) as file:
        stream = file.add_stream(codec, rate=rate_hz)
        assert isinstance(stream, av.AudioStream)
        stream.layout = layout
        frame = av.AudioFrame.from_ndarray(np.frombuffer(tone(1), "<i2")[None], format="s16", layout="mono")
        frame.sample_rate = 16_000
        resampler = av.AudioResampler(stream.format.name, layout, rate_hz, frame_size=stream.frame_size or 1024)
        for part in [*resampler.resample(frame), *resampler.resample(None)]:
            file.mux(stream.encode(part))
        file.mux(stream.encode(None))
    return sink.getvalue()


@pytest.mark.parametrize("kind", ["mp3", "aac", "opus"])
def test_rate_and_channels_may_change(kind: str) -> None:
    """As in files that were put one behind the other."""
    stream = stream_of(kind)
    assert stream is not None
    shapes = [(48_000, "mono"), (24_000, "stereo"), (48_000, "stereo"), (16_000, "mono")]
    heard = np.frombuffer(b"".join(stream.feed(encoded(kind, *shape)) for shape in shapes), "<i2")

    assert abs(len(heard) - 4 * 16_000) < 6_000
    for second in range(4):
        within = heard[second * 16_000 + 4_000 : second * 16_000 + 12_000]
        assert np.argmax(np.abs(np.fft.rfft(within))) == HZ // 2


PIECES = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda kind, rate_hz, layout, at, size: encoded(kind, rate_hz, layout)[at : at + size],
        st.sampled_from(["mp3", "aac", "opus"]),
        st.sampled_from([16_000, 24_000, 48_000]),
        st.sampled_from(["mono", "stereo"]),
        st.integers(0, 3_000),
        st.integers(1, 3_000),
    ),
)


@given(st.sampled_from(["mp3", "aac", "opus"]), st.lists(PIECES, max_size=8))
@settings(max_examples=150, deadline=None)
def test_whatever_comes_is_heard_or_refused(kind: str, pieces: list[bytes]) -> None:
    stream = stream_of(kind)
    assert stream is not None
    with suppress(InvalidParameter):
        for piece in pieces:
            assert len(stream.feed(piece)) % 2 == 0


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
