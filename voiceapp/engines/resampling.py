"""Incoming audio of any accepted format, as the engines want it: float32 at 16 kHz."""

from __future__ import annotations

import av
import numpy as np

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import AudioFormat, split_wav_header, to_float


class InputConverter:
    """A stream of int16 PCM bytes in one format to samples; keeps the resampler's state between calls."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self._rate_hz = audio_format.sample_rate_hz
        self._resampler = _resampler(self._rate_hz)

    def convert(self, pcm: bytes) -> Samples:
        """The samples of the next bytes; a RIFF header in front of them sets the rate from there on.

        Raises:
            InvalidParameter: an odd number of bytes, or a header of another kind of audio.
        """
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
        """What the resampler still holds; nothing may be converted afterwards."""
        return np.zeros(0, dtype=np.float32) if self._resampler is None else _joined(self._resampler.resample(None))


def _resampler(rate_hz: int) -> av.AudioResampler | None:
    if rate_hz == ENGINE_SAMPLE_RATE_HZ:
        return None
    return av.AudioResampler(format="flt", layout="mono", rate=ENGINE_SAMPLE_RATE_HZ)


def _joined(frames: list[av.AudioFrame]) -> Samples:
    pieces = [frame.to_ndarray()[0] for frame in frames]
    return np.concatenate(pieces).astype(np.float32) if pieces else np.zeros(0, dtype=np.float32)
