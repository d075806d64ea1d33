"""Bodies of the OpenAI-compatible operations on sound."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.protocol.wire.values import terms_in
from voiceapp.speech.synthesis import SoundFormat, Spoken, SynthesisCall

MAX_INPUT_CHARS = 4096


class VoiceName(Schema):
    id: CleanStr


class SpeechBody(Schema):
    model: CleanStr
    input: Annotated[Spoken, Field(min_length=1, max_length=MAX_INPUT_CHARS)]
    """Text to speak."""
    voice: CleanStr | VoiceName
    """One of this server's, such as `woman` or `en-gb-x-rp`; any other name speaks with the usual one."""
    response_format: SoundFormat = "mp3"
    """`pcm` is mono, 24 kHz, 16 bit, without a header; `opus` comes in Ogg."""
    speed: Annotated[float, Field(ge=0.25, le=4)] = 1.0
    stream_format: Literal["audio", "sse"] | None = None
    """`sse` sends the sound in base64 inside events."""

    def call(self) -> SynthesisCall:
        """The call in this server's own terms."""
        voice = self.voice if isinstance(self.voice, str) else self.voice.id
        return SynthesisCall(self.model, self.input, voice, self.response_format, self.speed)


class TranslationForm(Schema):
    model_config = ConfigDict(strict=False)  # a form has numbers as text

    model: CleanStr
    prompt: CleanStr | None = None
    """Names and other words that are likely to be said, between commas; sentences have no effect."""
    temperature: float | None = None
    """Taken and not used: the same sound gives the same words."""
    response_format: Literal["json", "text", "srt", "vtt", "verbose_json"] = "json"


class TranscriptionForm(TranslationForm):
    language: CleanStr | None = None
    """Spoken language as an ISO 639-1 code; without it, or with `auto`, it is detected where several are understood."""
    stream: Literal["true", "false", "True", "False"] | None = None
    """`true` sends an event for every stretch of speech, and the whole at the end."""

    @property
    def terms(self) -> tuple[str, ...]:
        return terms_in(self.prompt or "")


class TranscriptionUsage(Schema):
    type: Literal["duration"] = "duration"
    seconds: int


class Transcription(Schema):
    text: str
    usage: TranscriptionUsage
    task: str | None = None
    language: str | None = None
    duration: float | None = None
    """Length of the whole recording, in seconds."""
    segments: list[dict[str, Any]] | None = None
    """With `verbose_json`: stretches of speech, `start` and `end` in seconds."""
