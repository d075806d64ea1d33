"""Sound in files, written and read."""

from __future__ import annotations

import io
import threading
import wave

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.tones import pitch_hz, tone
from voiceapp.engines.sound.sound_files import CODECS, PIECE_S, SoundWriter, demuxer_of, samples_of
from voiceapp.errors import InvalidParameter

RATE_HZ = 24_000
HEADS = [
    b"RIFF\0\0\0\0WAVE",
    b"fLaC",
    b"OggS",
    b"ID3\x03",
    b"\x1aE\xdf\xa3",
    b"\0\0\0\x18ftypM4A ",
    b"\xff\xfb",
    b"\xff\xf1",
]


def written(kind: str, pcm: bytes) -> bytes:
    writer = SoundWriter(kind, RATE_HZ)
    pieces = [writer.feed(pcm[at : at + 1920]) for at in range(0, len(pcm), 1920)]
    return b"".join([*pieces, writer.finish()])


def read(file: bytes, *, max_s: float = 60.0) -> np.ndarray:
    return np.concatenate(list(samples_of(io.BytesIO(file), max_s=max_s, stop=threading.Event())))


@pytest.mark.parametrize("kind", ["wav", *CODECS])
def test_what_is_written_is_read_again(kind: str) -> None:
    samples = read(written(kind, tone(2.0, RATE_HZ)))
    assert samples.dtype == np.float32
    assert len(samples) / 16_000 == pytest.approx(2.0, abs=0.1)
    assert pitch_hz(samples) == pytest.approx(440, abs=2)
    assert np.abs(samples).max() == pytest.approx(8000 / 32768, abs=0.03)


@pytest.mark.parametrize("rate_hz", [5, 3_999, 4_000, 192_000, 192_001])
def test_a_sample_rate_that_no_recording_has_is_refused(rate_hz: int) -> None:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, rate_hz, 0, "NONE", ""))
        sound.writeframes(bytes(2 * rate_hz))
    if 4_000 <= rate_hz <= 192_000:
        assert len(read(file.getvalue())) == pytest.approx(16_000, rel=0.01)
        return
    with pytest.raises(InvalidParameter, match=f"sample rate of {rate_hz} Hz; 4000 to 192000"):
        read(file.getvalue())


def test_a_long_file_is_read_in_pieces() -> None:
    pieces = list(samples_of(io.BytesIO(written("flac", tone(70, RATE_HZ))), max_s=100, stop=threading.Event()))
    assert [round(len(piece) / 16_000) for piece in pieces] == [PIECE_S, PIECE_S, 70 - 2 * PIECE_S]


@pytest.mark.parametrize("kind", ["pcm", "wav", *CODECS])
def test_a_file_that_can_be_gone_back_in_says_how_long_it_is(kind: str) -> None:
    writer, pcm = SoundWriter(kind, RATE_HZ), tone(1.5, RATE_HZ)
    file = io.BytesIO(writer.feed(pcm) + writer.finish())
    file.write(writer.final_head())
    if kind == "pcm":
        assert file.getvalue() == pcm
        return
    assert len(read(file.getvalue())) / 16_000 == pytest.approx(1.5, abs=0.1)
    if kind == "wav":
        with wave.open(io.BytesIO(file.getvalue())) as sound:
            assert sound.getnframes() == 1.5 * RATE_HZ
            assert sound.readframes(sound.getnframes()) == pcm
        assert int.from_bytes(file.getvalue()[4:8], "little") == len(file.getvalue()) - 8
    if kind == "flac":
        with av.open(io.BytesIO(file.getvalue())) as sound:
            assert sound.duration == 1_500_000  # microseconds


def test_a_wav_file_ends_where_its_sizes_do() -> None:
    writer, piece = SoundWriter("wav", RATE_HZ), bytes(2**28)
    for _ in range(15):
        writer.feed(piece)
    with pytest.raises(InvalidParameter, match="4 GB"):
        writer.feed(piece)


def test_bare_samples_are_left_as_they_are() -> None:
    assert written("pcm", tone(0.1, RATE_HZ)) == tone(0.1, RATE_HZ)


@pytest.mark.parametrize("kind", ["pcm", "wav", *CODECS])
def test_a_file_without_sound_holds_none(kind: str) -> None:
    with pytest.raises(InvalidParameter):
        read(SoundWriter(kind, RATE_HZ).finish())


def test_a_file_may_not_be_longer_than_allowed() -> None:
    file = written("flac", tone(2.0, RATE_HZ))
    with pytest.raises(InvalidParameter, match=r"longer than 1.5 s"):
        read(file, max_s=1.5)


def test_reading_stops_when_nobody_waits() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(InvalidParameter):
        list(samples_of(io.BytesIO(written("wav", tone(1.0, RATE_HZ))), max_s=60, stop=stop))


@pytest.mark.parametrize("head", [b"", b"#EXTM3U\nhttp://a/", b"ffconcat version 1.0\nfile /etc/passwd", b"<svg/>"])
def test_what_reads_further_files_is_never_opened(head: bytes) -> None:
    assert demuxer_of(head[:12]) is None
    with pytest.raises(InvalidParameter, match="none of the kinds"):
        read(head)


def read_or_refused(file: bytes) -> str | None:
    """Which field is to blame, if the file is refused."""
    try:
        read(file, max_s=5)
    except InvalidParameter as refusal:
        return refusal.param
    return "file"


@given(st.sampled_from(HEADS), st.binary(max_size=400))
def test_broken_files_do_no_harm(head: bytes, rest: bytes) -> None:
    assert read_or_refused(head + rest) == "file"


@given(st.sampled_from(["wav", *CODECS]), st.integers(0, 2000), st.binary(min_size=1, max_size=40))
def test_damaged_files_do_no_harm(kind: str, at: int, damage: bytes) -> None:
    file = bytearray(FILES.setdefault(kind, written(kind, tone(0.3, RATE_HZ))))
    file[at : at + len(damage)] = damage
    assert read_or_refused(bytes(file)) == "file"


FILES: dict[str, bytes] = {}
