"""Recognition by a server with OpenAI's `/audio/transcriptions`: vLLM, Speaches, LocalAI, whisper.cpp, Ollama."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Recognition, Samples
from voiceapp.engines.languages import is_one_of
from voiceapp.engines.openai.client import ServerProvider
from voiceapp.engines.openai.forms import MultipartForm
from voiceapp.errors import EngineRefused, EngineUnavailable
from voiceapp.protocol.audio import to_pcm16, wav_header

MAX_RESPONSE_BYTES = 4 * 1024 * 1024


class OpenAIRecognizer(ServerProvider):
    """A `Recognizer`; one per process."""

    reads_early = False
    title = "recognition server"
    settings = "ASR"

    def __init__(self, *, languages: Sequence[str] = (), **about: Any) -> None:
        """`languages` that it knows, empty for all; for the rest see `ServerProvider`."""
        super().__init__(**about)
        self.languages = tuple(languages)

    async def recognize(
        self,
        audio: Samples,
        *,
        language: str | None = None,
        among: Sequence[str] | None = None,
        urgent: bool = True,
        terms: Sequence[str] = (),
    ) -> Recognition:
        if language and self.languages and not is_one_of(language, self.languages):
            raise EngineRefused(f"The recognition server does not know the language '{language}'.")
        fields = {"model": self._model, "response_format": "json"}
        if language:
            fields["language"] = language.split("-")[0].lower()
        if terms:
            fields["prompt"] = ", ".join(terms)
        form = MultipartForm(fields)
        pcm = to_pcm16(audio)
        content = wav_header(ENGINE_SAMPLE_RATE_HZ, data_bytes=len(pcm)) + pcm
        form.add_content("file", "speech.wav", "audio/wav", content)
        found = await self._server.ask(
            "/audio/transcriptions", form.body(), limit=MAX_RESPONSE_BYTES, content_type=form.content_type
        )
        return Recognition(_text(found), language or "")


def _text(found: Any) -> str:
    """The words of a response.

    Raises:
        EngineUnavailable: if there are none in it.
    """
    text = found.get("text") if isinstance(found, dict) else None
    if not isinstance(text, str):
        raise EngineUnavailable("The recognition server sent something that is not a transcript.")
    return text.strip()
