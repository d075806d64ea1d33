"""Speech by a Wyoming server, such as the one around Piper."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Any

from voiceapp.engines.interfaces import Voice
from voiceapp.engines.openai.speech import MAX_SPEECH_S, named
from voiceapp.engines.sound.resampling import OutputConverter
from voiceapp.engines.wyoming.server import WyomingProvider
from voiceapp.errors import EngineError, EngineUnavailable


class WyomingSpeech(WyomingProvider):
    """A `Synthesizer`; one per process. The protocol knows no speaking rate."""

    title = "speech server"
    settings = "TTS"

    def __init__(self, *, voices: Sequence[str] = (), **about: Any) -> None:
        """`voices` to choose from; empty takes those that it names itself. For the rest see `WyomingProvider`."""
        super().__init__(**about)
        self.voices = named(voices)

    @property
    def default_voice(self) -> str:
        """The first; empty where none is known yet, and the server chooses."""
        return self.voices[0].name if self.voices else ""

    async def probe(self) -> None:
        """See `Provider`; its voices are known from then on."""
        if self.voices and self._server.trouble is None:
            return
        with suppress(EngineError):  # the log and the server's `trouble` say so
            found = [
                voice for program in (await self._server.info()).tts for voice in program.voices if voice.installed
            ]
            self.voices = tuple(
                Voice(
                    voice.name,
                    voice.description or voice.name,
                    (voice.languages or [""])[0].replace("_", "-").split("-")[0].lower(),
                )
                for voice in found
            )

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        from wyoming.audio import AudioChunk, AudioStart, AudioStop
        from wyoming.tts import Synthesize, SynthesizeVoice

        known = next((each.name for each in self.voices if each.name == voice), self.default_voice)
        async with self._server.connected() as client:
            chosen = SynthesizeVoice(name=known) if known else None
            await client.write_event(Synthesize(text=text, voice=chosen).event())
            converter: OutputConverter | None = None
            left_bytes = 0
            while not AudioStop.is_type((event := await self._server.next_event(client)).type):
                if AudioStart.is_type(event.type):
                    begun = AudioStart.from_event(event)
                    if (begun.width, begun.channels) != (2, 1):
                        raise EngineUnavailable("The speech server sends a kind of sound that is not understood.")
                    converter = OutputConverter(begun.rate, sample_rate_hz)
                    left_bytes = MAX_SPEECH_S * begun.rate * 2
                elif AudioChunk.is_type(event.type) and converter is not None:
                    audio = AudioChunk.from_event(event).audio
                    left_bytes -= len(audio)
                    if left_bytes < 0:
                        raise EngineUnavailable("The speech server sent a sound that does not end.")
                    yield converter.convert(audio)
            if converter is not None and (pcm := converter.flush()):
                yield pcm
