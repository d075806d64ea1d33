"""Speech of one answer: text in pieces, sound in the format that was asked for, counted as it is spoken."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np

from voiceapp.accounts.charges import Charge
from voiceapp.engines.interfaces import Synthesizer
from voiceapp.engines.sound_files import SoundWriter
from voiceapp.errors import InvalidParameter

FORMATS = ("pcm", "wav", "mp3", "opus")
MP3_RATES_HZ = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
"""That there are in mp3; opus has one of its own, and the others any."""
KEPT_TEXT = 20_000
"""Characters of one answer that its record keeps."""
FULL_VOLUME = 50
"""The volume at which the sound is what the engine made."""


@dataclass(frozen=True, slots=True)
class SpeechSettings:
    """How a text is spoken."""

    voice: str
    format: str
    sample_rate_hz: int
    rate: float
    """1.0 is the voice's own."""
    gain: float


def check_rate(settings: SpeechSettings, param: str) -> SpeechSettings:
    """The settings themselves.

    Raises:
        InvalidParameter: if there is no such sample rate in their format.
    """
    if settings.format == "mp3" and settings.sample_rate_hz not in MP3_RATES_HZ:
        rates = ", ".join(map(str, MP3_RATES_HZ))
        raise InvalidParameter(f"{param} must be one of {rates} where the format is mp3.", param=param)
    return settings


class Speech:
    """One file or stream of sound."""

    def __init__(self, engine: Synthesizer, settings: SpeechSettings) -> None:
        self._engine = engine
        self._settings = settings
        self._writer = SoundWriter(settings.format, settings.sample_rate_hz)
        self._has_sounded = False
        self.characters = 0
        """Spoken so far."""
        self.text = ""
        """What was spoken so far, the first of it if it is long."""
        self._samples = 0

    async def say(self, text: str, meter: Charge) -> AsyncGenerator[bytes, None]:
        """The sound of more text, as it is made.

        Raises:
            AccessDenied: if the caller's budget is used up.
            Throttled: if a rate or quota is used up.
            EngineError: if the engine fails.
        """
        await meter.reserve(characters=self.characters + len(text))
        self.characters += len(text)
        self.text = (self.text + text)[:KEPT_TEXT]
        meter.used(characters=self.characters)
        how = self._settings
        async with aclosing(
            self._engine.speak(text, voice=how.voice, sample_rate_hz=how.sample_rate_hz, rate=how.rate)
        ) as sound:
            async for pcm in sound:
                self._samples += len(pcm) // 2
                if written := self._writer.feed(self._loud(pcm)):
                    self._has_sounded = True
                    yield written

    @property
    def audio_ms(self) -> int:
        """How long what was spoken lasts."""
        return self._samples * 1000 // self._settings.sample_rate_hz

    def rest(self) -> bytes:
        """What a format holds back until the end."""
        return self._writer.finish() if self._has_sounded else b""

    def _loud(self, pcm: bytes) -> bytes:
        if self._settings.gain == 1.0:
            return pcm
        samples = np.frombuffer(pcm, dtype="<i2").astype(np.float32) * self._settings.gain
        return bytes(np.clip(samples, -32768, 32767).astype("<i2").tobytes())
