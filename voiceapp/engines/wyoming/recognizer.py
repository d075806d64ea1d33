"""Recognition by a Wyoming server, such as those around Whisper, Vosk and Speech-to-Phrase."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Recognition, Samples
from voiceapp.engines.languages import is_one_of
from voiceapp.engines.wyoming.server import WyomingProvider
from voiceapp.errors import EngineError, EngineRefused
from voiceapp.protocol.audio import to_pcm16

CHUNK_BYTES = 2 * ENGINE_SAMPLE_RATE_HZ // 10


class WyomingRecognizer(WyomingProvider):
    """A `Recognizer`; one per process."""

    reads_early = False
    title = "recognition server"
    settings = "ASR"

    def __init__(self, *, languages: Sequence[str] = (), **about: Any) -> None:
        """`languages` that it knows; empty takes those that it names itself. For the rest see `WyomingProvider`."""
        super().__init__(**about)
        self.languages = tuple(languages)

    async def probe(self) -> None:
        """See `Provider`; its languages are known from then on."""
        if self.languages and self._server.trouble is None:
            return
        with suppress(EngineError):  # the log and the server's `trouble` say so
            models = [model for program in (await self._server.info()).asr for model in program.models]
            wanted = [model for model in models if self._model in ("", model.name)]
            self.languages = tuple(
                sorted({code.split("-")[0].split("_")[0].lower() for model in wanted for code in model.languages})
            )

    async def recognize(
        self,
        audio: Samples,
        *,
        language: str | None = None,
        among: Sequence[str] | None = None,
        urgent: bool = True,
        terms: Sequence[str] = (),
    ) -> Recognition:
        from wyoming.asr import Transcribe, Transcript
        from wyoming.audio import AudioChunk, AudioStart, AudioStop

        if language and self.languages and not is_one_of(language, self.languages):
            raise EngineRefused(f"The recognition server does not know the language '{language}'.")
        sound = {"rate": ENGINE_SAMPLE_RATE_HZ, "width": 2, "channels": 1}
        pcm = to_pcm16(audio)
        async with self._server.connected() as client:
            short = language.split("-")[0].lower() if language else None
            await client.write_event(Transcribe(name=self._model or None, language=short).event())
            await client.write_event(AudioStart(**sound).event())
            for start in range(0, len(pcm), CHUNK_BYTES):
                await client.write_event(AudioChunk(audio=pcm[start : start + CHUNK_BYTES], **sound).event())
            await client.write_event(AudioStop().event())
            while not Transcript.is_type((event := await self._server.next_event(client)).type):
                pass
            found = Transcript.from_event(event)
            return Recognition(found.text.strip(), found.language or language or "")
        raise AssertionError("the connection passes no error over")
