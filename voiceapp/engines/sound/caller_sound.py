"""The caller's audio, from the bytes of the wire to frames: converted, freed of echo, cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voiceapp.engines.interfaces import Samples
from voiceapp.engines.sound.echo import Cleaned, EchoFilter
from voiceapp.engines.sound.resampling import InputConverter
from voiceapp.protocol.audio import AudioFormat, Framer
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.states import EchoRisk
from voiceapp.protocol.wire.events import AudioDelta


@dataclass(frozen=True, slots=True)
class Frame:
    """512 samples at 16 kHz."""

    to_read: Samples
    """Audio for recognition."""
    to_detect: Samples
    """Audio for voice detection: without echo."""
    echo: EchoRisk


class CallerSound:
    def __init__(self, config: SessionConfig) -> None:
        self._format = config.input_format
        self._converter = InputConverter(self._format)
        self._echo = EchoFilter(config.echo_cancellation)
        self.clear()

    def configure(self, config: SessionConfig) -> None:
        self._echo.mode = config.echo_cancellation
        if config.input_format != self._format:
            self._format = config.input_format
            self._converter = InputConverter(self._format)

    def convert(self, audio: bytes) -> Samples:
        """The samples of bytes from the wire.

        Raises:
            InvalidParameter: if they are not audio in the session's input format.
        """
        return self._converter.convert(audio)

    def push(self, samples: Samples, now: float) -> list[Frame]:
        """The frames that are whole with what arrives now."""
        return self._cut(self._echo.clean(samples, now))

    def flush(self) -> list[Frame]:
        """The rest, padded with silence to a frame."""
        frames = self._cut(self._echo.flush())
        return [*frames, *_paired(self._to_read.flush(), self._to_detect.flush())]

    def clear(self) -> None:
        """Forget what does not fill a frame."""
        self._to_read, self._to_detect = Framer(), Framer()

    def note_played(self, delta: AudioDelta, audio_format: AudioFormat) -> None:
        """Note audio that the caller will hear, which may come back."""
        if delta.heard_from is not None:
            self._echo.play(delta.audio, audio_format, response_id=delta.response_id, at=delta.heard_from)

    def _cut(self, cleaned: Cleaned) -> list[Frame]:
        return _paired(self._to_read.push(cleaned.to_read), self._to_detect.push(cleaned.to_detect), cleaned.risk)


def _paired(to_read: Sequence[Samples], to_detect: Sequence[Samples], echo: EchoRisk = EchoRisk.NONE) -> list[Frame]:
    return [Frame(*pair, echo) for pair in zip(to_read, to_detect, strict=True)]
