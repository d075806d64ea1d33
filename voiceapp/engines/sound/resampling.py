"""Audio between the rates of clients and engines: incoming to float32 at 16 kHz, made speech to what is asked for."""

from __future__ import annotations

import av
import numpy as np

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.errors import InvalidParameter
from voiceapp.protocol import g711
from voiceapp.protocol.audio import AudioFormat, split_wav_header, to_float


class InputConverter:
    """A stream of int16 PCM bytes in one format to samples; keeps the resampler's state between calls."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self._format = audio_format
        self._rate_hz = audio_format.sample_rate_hz
        self._resampler = _resampler(self._rate_hz)

    def convert(self, pcm: bytes) -> Samples:
        """The samples of the next bytes; a RIFF header in front of them sets the rate from there on.

        Raises:
            InvalidParameter: an odd number of bytes, or a header of another kind of audio.
        """
        rate = None
        if self._format.is_telephone:
            pcm = g711.decoded(pcm, self._format.name)
        else:
            rate, pcm = split_wav_header(pcm)
        if rate is not None and rate != self._rate_hz:
            if not 4_000 <= rate <= 192_000:
                raise InvalidParameter(f"A sample rate of {rate} Hz is not supported.", param="audio")
            self._rate_hz, self._resampler = rate, _resampler(rate)
        if len(pcm) % 2:
            raise InvalidParameter("16-bit audio has an even number of bytes.", param="audio")
        if self._resampler is None:
            return to_float(pcm)
        if not pcm:
            return np.zeros(0, dtype=np.float32)
        frame = av.AudioFrame.from_ndarray(np.frombuffer(pcm, dtype="<i2")[None], format="s16", layout="mono")
        frame.sample_rate = self._rate_hz
        return _joined(self._resampler.resample(frame))

    def flush(self) -> Samples:
        """Return the audio that the resampler still holds; nothing may be converted afterwards."""
        return np.zeros(0, dtype=np.float32) if self._resampler is None else _joined(self._resampler.resample(None))


class OutputConverter:
    """Mono int16 from one sample rate to another, across the edges of pieces."""

    def __init__(self, source_rate_hz: int, target_rate_hz: int) -> None:
        self._source_rate_hz = source_rate_hz
        self._resampler = (
            None
            if source_rate_hz == target_rate_hz
            else av.AudioResampler(format="s16", layout="mono", rate=target_rate_hz)
        )

    def convert(self, pcm: bytes) -> bytes:
        """The samples of the next bytes, as far as the filter lets them go."""
        if self._resampler is None:
            return pcm
        frame = av.AudioFrame.from_ndarray(np.frombuffer(pcm, dtype=np.int16)[None], format="s16", layout="mono")
        frame.sample_rate = self._source_rate_hz
        return _bytes(self._resampler.resample(frame))

    def flush(self) -> bytes:
        """Return the audio that the filter still holds; nothing may be converted afterwards."""
        return b"" if self._resampler is None else _bytes(self._resampler.resample(None))


def _resampler(rate_hz: int) -> av.AudioResampler | None:
    if rate_hz == ENGINE_SAMPLE_RATE_HZ:
        return None
    return av.AudioResampler(format="flt", layout="mono", rate=ENGINE_SAMPLE_RATE_HZ)


def _joined(frames: list[av.AudioFrame]) -> Samples:
    pieces = [frame.to_ndarray()[0] for frame in frames]
    return np.concatenate(pieces).astype(np.float32) if pieces else np.zeros(0, dtype=np.float32)


def _bytes(frames: list[av.AudioFrame]) -> bytes:
    return b"".join(frame.to_ndarray().tobytes() for frame in frames)
