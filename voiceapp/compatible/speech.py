"""Text made into a file of speech, sent while it is spoken."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from voiceapp.accounts import ledger
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.metering import charge
from voiceapp.compatible.audio_schemas import SpeechBody
from voiceapp.engines.catalogue import catalogue
from voiceapp.engines.interfaces import Synthesizer
from voiceapp.engines.sound_files import SoundWriter
from voiceapp.errors import InvalidParameter

SAMPLE_RATE_HZ = 24_000
"""What clients of OpenAI's take headerless `pcm` for."""
MEDIA_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
UNSPEAKABLE = "The text holds nothing that is spoken."


async def speak(caller: Caller, body: SpeechBody, *, request_id: str) -> AsyncGenerator[bytes, None]:
    """The file in pieces, the first as soon as there is sound. Its characters are in the ledger before that.

    Raises:
        InvalidParameter: if nothing of the text makes a sound.
        ModelNotFound, AccessDenied, Throttled, EngineError: as their classes say, also between pieces.
    """
    card = catalogue().get(body.model, "tts")
    engine: Synthesizer = catalogue().provider(card)
    voice = body.voice if isinstance(body.voice, str) else body.voice.id
    async with charge(
        caller, operation="speech", model=card.name, family="tts", reserve_tokens=0, request_id=request_id
    ):
        writer, is_first = SoundWriter(body.response_format, SAMPLE_RATE_HZ), True
        async with aclosing(
            engine.speak(body.input, voice=voice, sample_rate_hz=SAMPLE_RATE_HZ, rate=body.speed)
        ) as sound:
            async for pcm in sound:
                if is_first:
                    is_first = False
                    await ledger.write(
                        caller,
                        operation="speech",
                        model=card.name,
                        family="tts",
                        request_id=request_id,
                        quantities={"characters": len(body.input)},
                    )
                if written := writer.feed(pcm):
                    yield written
        if is_first:
            raise InvalidParameter(UNSPEAKABLE, param="input")
        yield writer.finish()
