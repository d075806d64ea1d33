"""The task that speaks a long text into one file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from voiceapp.accounts import ledger
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.metering import charge, require_model
from voiceapp.compatible.audio_schemas import Spoken
from voiceapp.compatible.speech import MEDIA_TYPES, SAMPLE_RATE_HZ, UNSPEAKABLE
from voiceapp.engines.catalogue import catalogue
from voiceapp.engines.interfaces import Synthesizer
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.engines.sound_files import SoundWriter
from voiceapp.errors import InvalidParameter
from voiceapp.schemas import CleanStr, Schema
from voiceapp.tasks.inputs import with_patience
from voiceapp.tasks.kinds import Done, Order, Part

MAX_CHARS = 200_000


class Text(Schema):
    text: Annotated[Spoken, Field(min_length=1, max_length=MAX_CHARS)]
    """What to say."""


class Speaking(Schema):
    voice: CleanStr = ""
    """One of this server's, such as `en-us`; any other name speaks with the usual one."""
    format: Literal["wav", "opus", "mp3", "flac"] = "wav"
    """`opus` comes in Ogg."""
    rate: Annotated[float, Field(ge=0.25, le=4)] = 1.0
    """1 is the usual pace."""


class SpeechTaskBody(Schema):
    model: CleanStr
    """Such as `tts-1`."""
    input: Text
    parameters: Speaking | None = None


class SpeakingAtLength:
    """A `Kind`."""

    path = "audio/tts/synthesis"
    title = "Speak a long text"
    description = "Speaks up to 200,000 characters into one file; `output.url` is where it can be fetched."
    body = SpeechTaskBody
    time_limit_s = 3600.0
    max_attempts = 3
    parallel = 1
    has_results = False

    async def accept(self, caller: Caller, body: SpeechTaskBody) -> Order:
        card = catalogue().get(body.model, "tts")
        require_model(caller, card.name, "tts")
        how = body.parameters or Speaking()
        return Order(body.model, [{"text": body.input.text}], how.model_dump())

    async def run(self, part: Part) -> Done:
        card = catalogue().get(part.model, "tts")
        text = str(part.order["text"])
        form = str(part.common["format"])
        path = part.folder / f"speech.{'ogg' if form == 'opus' else form}"
        async with charge(
            part.caller,
            operation="speech",
            model=card.name,
            family="tts",
            reserve_tokens=0,
            request_id=part.charge_id,
        ):
            await ledger.write(
                part.caller,
                operation="speech",
                model=card.name,
                family="tts",
                request_id=part.charge_id,
                quantities={"characters": len(text)},
            )
            await self._speak(part, text, path)
        return Done({"url": await part.keep(path, MEDIA_TYPES[form])}, {"characters": len(text)})

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])

    async def _speak(self, part: Part, text: str, path: Path) -> None:
        engine: Synthesizer = catalogue().provider(catalogue().get(part.model, "tts"))
        writer = SoundWriter(part.common["format"], SAMPLE_RATE_HZ)
        spoken, is_silent = 0, True
        with path.open("wb") as sink:
            for sentence in _sentences(text):
                # Sentence by sentence: conversations get their turn at the voice in between.
                sound = await with_patience(partial(_gathered, engine, sentence, part.common))
                if sound:
                    is_silent = False
                    sink.write(writer.feed(sound))
                spoken += len(sentence)
                part.progress(spoken / len(text))
            if is_silent:
                raise InvalidParameter(UNSPEAKABLE)
            sink.write(writer.finish())
            sink.seek(0)
            sink.write(writer.final_head())


def _sentences(text: str) -> list[str]:
    splitter = SentenceSplitter()
    return [piece for piece in (*splitter.feed(text), *splitter.flush()) if piece.strip()]


async def _gathered(engine: Synthesizer, text: str, how: Mapping[str, Any]) -> bytes:
    stream: AsyncIterator[bytes] = engine.speak(
        text, voice=how["voice"], sample_rate_hz=SAMPLE_RATE_HZ, rate=how["rate"]
    )
    async with aclosing(stream) as sound:  # type: ignore[type-var]
        return b"".join([pcm async for pcm in sound])
