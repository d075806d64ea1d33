"""Text made into a file of speech, sent while it is spoken."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import charge
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.models.fallback import FallbackSynthesizer
from voiceapp.engines.models.lanes import not_heard_yet
from voiceapp.engines.models.providers import providers
from voiceapp.engines.sound.sound_files import SoundWriter
from voiceapp.errors import InvalidParameter
from voiceapp.http.schemas import CleanStr
from voiceapp.speech.room import in_room

SAMPLE_RATE_HZ = 24_000
"""Sample rate that clients of OpenAI's expect of headerless `pcm`."""
MEDIA_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
UNSPEAKABLE = "The text holds nothing that is spoken."

SoundFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]


def spoken(text: str) -> str:
    """The text itself.

    Raises:
        ValueError: if it is white space.
    """
    if not text.strip():
        raise ValueError("there is nothing to say")
    return text


Spoken = Annotated[CleanStr, AfterValidator(spoken)]


@dataclass(frozen=True, slots=True)
class SynthesisCall:
    model: str
    text: str
    voice: str
    format: SoundFormat
    rate: float = 1.0
    """1.0 is the voice's own."""


@in_room
async def speak(
    caller: Caller, call: SynthesisCall, *, request_id: str, note: Callable[[str], None]
) -> AsyncGenerator[bytes, None]:
    """The file in pieces, the first as soon as there is sound. Its characters are in the ledger before that, and `note`
    has taken which model speaks.

    Raises:
        InvalidParameter: if nothing of the text makes a sound.
        ModelNotFound: if the model does not exist.
        AccessDenied: if the key may not use the model.
        Throttled: if a rate, quota or budget is used up, or there is no room for one more.
        EngineError: if the engine fails, also between pieces.
    """
    card = catalogue().get(call.model, "tts")
    engine = FallbackSynthesizer(providers().links(card))
    async with charge(
        caller, operation="speech", model=card.name, family="tts", request_id=request_id, characters=len(call.text)
    ) as meter:
        not_heard_yet()
        writer, is_first = SoundWriter(call.format, SAMPLE_RATE_HZ), True
        async with aclosing(
            engine.speak(call.text, voice=call.voice, sample_rate_hz=SAMPLE_RATE_HZ, rate=call.rate, note=note)
        ) as sound:
            async for pcm in sound:
                if is_first:
                    is_first = False
                    meter.used(characters=len(call.text))
                    await meter.settle()
                not_heard_yet()
                if written := writer.feed(pcm):
                    yield written
        if is_first:
            raise InvalidParameter(UNSPEAKABLE, param="input")
        yield writer.finish()
