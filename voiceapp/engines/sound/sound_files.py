"""Sound in files: read into samples for recognition, and written from speech as it is made.

Everything here blocks, and what a file says of itself is not believed: only containers that hold sound alone are
opened, each by the one demuxer for it, since others (playlists) read further files and addresses.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

import av
import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import MAX_WAV_DATA_BYTES, wav_header

HEAD_BYTES = 12
FLAC_HEAD = b"fLaC\x00\x00\x00\x22"
"""Beginning of a FLAC file: 34 bytes that describe the stream, which the codec has when it is at its end."""
PIECE_S = 30.0
"""About how much of a file is decoded at one go."""
MIN_RATE_HZ, MAX_RATE_HZ = 4_000, 192_000
"""Range of sample rates: a frame at 5 Hz, 54 bytes in FLAC, would become gigabytes."""
RATES = f"{MIN_RATE_HZ} to {MAX_RATE_HZ} are read"
KNOWN = "wav, mp3, m4a, mp4, aac, ogg, opus, flac and webm"
CODECS = {"mp3": ("mp3", "libmp3lame"), "opus": ("ogg", "libopus"), "aac": ("adts", "aac"), "flac": ("flac", "flac")}
"""Container and codec by the name of a format."""


def demuxer_of(head: bytes) -> str | None:
    """Return the demuxer for a file that begins with these 12 bytes; None for an unknown format."""
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "wav"
    for magic, name in ((b"fLaC", "flac"), (b"OggS", "ogg"), (b"ID3", "mp3"), (b"\x1aE\xdf\xa3", "matroska")):
        if head.startswith(magic):
            return name
    if head[4:8] == b"ftyp":
        return "mov"
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        # MPEG: layer bits of zero are ADTS, the frames of AAC.
        return "aac" if head[1] & 0x06 == 0 else "mp3"
    return None


class MonoResampler:
    """Decoded frames to mono at 16 kHz; rate, channels and format may change from one to the next."""

    def __init__(self, sample_format: str) -> None:
        self._format = sample_format
        self._given: tuple[str, str, int] | None = None
        self._resampler: av.AudioResampler | None = None

    def resample(self, frame: av.AudioFrame) -> list[NDArray[Any]]:
        """Return the samples that are ready.

        Raises:
            ValueError: if the frame cannot be read.
            av.FFmpegError: the same.
        """
        ready: list[av.AudioFrame] = []
        given = (frame.format.name, frame.layout.name, frame.sample_rate)
        if given != self._given:
            ready = self._resampler.resample(None) if self._resampler else []
            self._given = given
            self._resampler = av.AudioResampler(format=self._format, layout="mono", rate=ENGINE_SAMPLE_RATE_HZ)
        assert self._resampler is not None  # made for the first frame
        return [part.to_ndarray()[0] for part in (*ready, *self._resampler.resample(frame))]


def samples_of(file: BinaryIO, *, max_s: float, stop: threading.Event) -> Iterator[Samples]:
    """The first sound track as mono float32 at 16 kHz, piece by piece; ends early when `stop` is set.

    Raises:
        InvalidParameter: if the file is of no kind that is read here, is broken, holds no sound, or more than `max_s`
            seconds of it.
    """
    file.seek(0)
    demuxer = demuxer_of(file.read(HEAD_BYTES))
    file.seek(0)
    if demuxer is None:
        raise InvalidParameter(f"file is none of the kinds of sound that are read here: {KNOWN}.", param="file")
    piece: list[Samples] = []
    total, most = 0, int(max_s * ENGINE_SAMPLE_RATE_HZ)
    given = 0
    resampler = MonoResampler("flt")
    try:
        with av.open(file, format=demuxer) as container:
            if not container.streams.audio:
                raise InvalidParameter("file holds no sound.", param="file")
            for frame in container.decode(container.streams.audio[0]):
                if stop.is_set():
                    break
                if not MIN_RATE_HZ <= frame.sample_rate <= MAX_RATE_HZ:
                    raise InvalidParameter(f"file has a sample rate of {frame.sample_rate} Hz; {RATES}.", param="file")
                frame.pts = None  # damaged times would make the resampler fill gaps with silence
                for resampled in resampler.resample(frame):
                    piece.append(resampled)
                    total += resampled.size
                if total > most:
                    raise InvalidParameter(f"file is longer than {max_s:g} s, the most that is read.", param="file")
                if total - given >= PIECE_S * ENGINE_SAMPLE_RATE_HZ:
                    given = total
                    yield np.concatenate(piece)
                    piece = []
    except (av.FFmpegError, ValueError) as error:
        raise InvalidParameter("file is broken: its sound cannot be read.", param="file") from error
    if not total:
        raise InvalidParameter("file holds no sound.", param="file")
    if piece:
        yield np.concatenate(piece)


class _Sink:
    """File that the muxer writes to; without `seek`, it writes nothing that it would have to come back to."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        written, self._written = bytes(self._written), bytearray()
        return written


class SoundWriter:
    """Mono int16 PCM in, a file's bytes out as they are ready; quick enough for the event loop."""

    def __init__(self, kind: str, sample_rate_hz: int) -> None:
        """`kind` is `pcm`, `wav` or a key of CODECS."""
        self._rate_hz = sample_rate_hz
        self._is_wav = kind == "wav"
        self._head = wav_header(sample_rate_hz) if self._is_wav else b""
        self._pcm_bytes = 0
        self._final_head = b""
        self._sink = _Sink()
        self._container = None
        if kind in CODECS:
            container, codec = CODECS[kind]
            self._container = av.open(self._sink, "w", format=container)
            self._stream = self._container.add_stream(codec, rate=48_000 if kind == "opus" else sample_rate_hz)
            self._stream.layout = "mono"
            self._resampler = av.AudioResampler(
                format=self._stream.format.name, layout="mono", rate=self._stream.rate, frame_size=0
            )

    def feed(self, pcm: bytes) -> bytes:
        """Return the encoded bytes that are ready after these samples; often none, since codecs gather some.

        Raises:
            InvalidParameter: if it is more than a file of this kind can hold.
        """
        self._pcm_bytes += len(pcm)
        if self._is_wav and self._pcm_bytes > MAX_WAV_DATA_BYTES:
            raise InvalidParameter("The speech is longer than a wav file can hold, which is 4 GB; opus is far smaller.")
        if self._container is None:
            head, self._head = self._head, b""
            return head + pcm
        frame = av.AudioFrame.from_ndarray(np.frombuffer(pcm, dtype="<i2")[None], format="s16", layout="mono")
        frame.sample_rate = self._rate_hz
        self._encode(frame)
        return self._sink.take()

    def finish(self) -> bytes:
        """The end of the file; of speech without a sound, a file without one."""
        if self._container is None:
            head, self._head = self._head, b""
            return head
        self._encode(None)
        self._container.mux(self._stream.encode(None))
        if self._container.format.name == "flac":
            self._final_head = FLAC_HEAD + bytes(self._stream.codec_context.extradata or b"")
        self._container.close()
        return self._sink.take()

    def final_head(self) -> bytes:
        """Return the beginning of the finished file, for who can go back there: its length is known now. Empty
        where the beginning is right as it is."""
        return wav_header(self._rate_hz, data_bytes=self._pcm_bytes) if self._is_wav else self._final_head

    def _encode(self, frame: av.AudioFrame | None) -> None:
        assert self._container is not None
        for resampled in self._resampler.resample(frame):
            self._container.mux(self._stream.encode(resampled))
