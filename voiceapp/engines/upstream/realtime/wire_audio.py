"""A stream of audio from one wire format to another, where another service and a caller do not share one."""

from __future__ import annotations

from voiceapp.engines.sound.resampling import OutputConverter
from voiceapp.errors import InvalidParameter
from voiceapp.protocol import g711
from voiceapp.protocol.audio import AudioFormat, split_wav_header, wav_header


class WireConverter:
    """One direction of one session; keeps the resampler's state between calls."""

    def __init__(self, source: AudioFormat, target: AudioFormat, *, is_stream: bool = False) -> None:
        """`is_stream`: a sample may be torn between two calls."""
        self.formats = (source, target)
        self._is_stream = is_stream
        self._half = b""
        """The first byte of a torn sample."""
        self._source, self._target = source, target
        self._rate_hz = source.sample_rate_hz
        self._resampler = OutputConverter(self._rate_hz, target.sample_rate_hz)
        self._is_new = True

    @property
    def is_needed(self) -> bool:
        """The formats differ on the wire."""
        laws = [g711.LAWS.get(each.name) for each in self.formats]
        rates = {each.sample_rate_hz for each in self.formats}
        return laws[0] != laws[1] or len(rates) > 1 or "wav" in (self._source.name, self._target.name)

    def passes(self, n_bytes: int) -> bool:
        """The next bytes, so many, are the same in the other format."""
        is_even = self._source.is_telephone or n_bytes % 2 == 0
        return not (self.is_needed or self._half) and (is_even or not self._is_stream)

    def convert(self, data: bytes) -> bytes:
        """The next bytes in the other format, as far as the filter lets them go.

        Raises:
            InvalidParameter: an odd number of bytes of 16-bit audio, or a header of another kind of audio.
        """
        if self._source.is_telephone:
            pcm = g711.decoded(data, self._source.name)
        else:
            rate_hz, pcm = split_wav_header(data)
            if rate_hz is not None and rate_hz != self._rate_hz:
                if not 4_000 <= rate_hz <= 192_000:
                    raise InvalidParameter(f"A sample rate of {rate_hz} Hz is not supported.", param="audio")
                self._rate_hz, self._resampler = rate_hz, OutputConverter(rate_hz, self._target.sample_rate_hz)
            pcm = self._half + pcm
            if self._is_stream and len(pcm) % 2:
                pcm, self._half = pcm[:-1], pcm[-1:]
            else:
                self._half = b""
        if len(pcm) % 2:
            raise InvalidParameter("16-bit audio has an even number of bytes.", param="audio")
        return self._written(self._resampler.convert(pcm) if pcm else b"")

    def flush(self) -> bytes:
        """Return the audio that the filter still holds; the next bytes begin a new stream."""
        rest = self._written(self._resampler.flush()) if not self._is_new else b""
        self._half = b""
        self._resampler, self._is_new = OutputConverter(self._rate_hz, self._target.sample_rate_hz), True
        return rest

    def _written(self, pcm: bytes) -> bytes:
        if self._target.is_telephone:
            pcm = g711.encoded(pcm, self._target.name)
        if self._target.name == "wav" and self._is_new and pcm:
            pcm = wav_header(self._target.sample_rate_hz) + pcm
        self._is_new = self._is_new and not pcm
        return pcm
