"""Speech by a server with OpenAI's `/audio/speech`, taken as it comes where the server streams it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import aiohttp

from voiceapp.engines.interfaces import Voice
from voiceapp.engines.openai.client import ServerProvider
from voiceapp.engines.sound.resampling import OutputConverter
from voiceapp.errors import EngineUnavailable, InvalidParameter
from voiceapp.protocol.audio import WAV_HEADER_BYTES, split_wav_header

SAMPLE_RATE_HZ = 24_000
VOICES = tuple(Voice(name, name.title(), "") for name in ("alloy", "echo", "fable", "nova", "onyx", "shimmer"))
"""Voices that every such server knows, for one whose voices the operator did not name."""
MAX_SPEECH_S = 10 * 60
"""Longest speech of one text."""


class OpenAISpeech(ServerProvider):
    """A `Synthesizer`; one per process."""

    title = "speech server"
    settings = "TTS"

    def __init__(self, *, voices: Sequence[str] = (), **about: Any) -> None:
        """For `voices` see `named`, for the rest `ServerProvider`."""
        super().__init__(**about)
        self.voices = named(voices) or VOICES

    @property
    def default_voice(self) -> str:
        return self.voices[0].name

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        known = voice if any(voice == each.name for each in self.voices) else self.default_voice
        body: dict[str, Any] = {"model": self._model, "input": text, "voice": known, "response_format": "pcm"}
        if rate != 1.0:
            body["speed"] = round(rate, 2)
        try:
            response = await self._server.post("/audio/speech", body, accept="audio/pcm, */*")
            try:
                if response.content_type.startswith(("text/", "application/json")):
                    raise EngineUnavailable(f"The speech server sent {response.content_type} in place of sound.")
                sound = _Sound(sample_rate_hz)
                async for chunk in response.content.iter_any():
                    if pcm := sound.feed(chunk):
                        yield pcm
                if pcm := sound.flush():
                    yield pcm
            finally:
                response.close()
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self._server.failure(error) from error


def named(voices: Sequence[str]) -> tuple[Voice, ...]:
    """Voices from what an operator writes: NAME or NAME:LANGUAGE."""
    pairs = (each.rpartition(":")[::2] if ":" in each else (each, "") for each in voices)
    return tuple(Voice(name, name, language) for name, language in pairs)


class _Sound:
    """Bytes of a response to PCM at the rate asked for."""

    def __init__(self, sample_rate_hz: int) -> None:
        self._target_hz = sample_rate_hz
        self._converter: OutputConverter | None = None
        self._rest = b""
        self._taken = 0

    def feed(self, chunk: bytes) -> bytes:
        """The next bytes, of a stream that may begin with a RIFF header although none was asked for.

        Raises:
            EngineUnavailable: if it is neither PCM nor WAV, or longer than ten minutes.
        """
        self._taken += len(chunk)
        if self._taken > MAX_SPEECH_S * SAMPLE_RATE_HZ * 2:
            raise EngineUnavailable("The speech server sent a sound that does not end.")
        data = self._rest + chunk
        if self._converter is None:
            if len(data) < WAV_HEADER_BYTES:
                self._rest = data
                return b""
            try:
                rate_hz, data = split_wav_header(data)
            except InvalidParameter as error:
                raise EngineUnavailable("The speech server sent a kind of sound that was not asked for.") from error
            self._converter = OutputConverter(rate_hz or SAMPLE_RATE_HZ, self._target_hz)
        whole = len(data) // 2 * 2
        self._rest = data[whole:]
        return self._converter.convert(data[:whole]) if whole else b""

    def flush(self) -> bytes:
        if self._converter is None:
            return b""
        return self._converter.flush()
