"""The task that speaks a long text into one file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from django.conf import settings
from pydantic import Field

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import charge, require_budget, require_model
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.interfaces import Synthesizer
from voiceapp.engines.models.lanes import not_heard_yet
from voiceapp.engines.models.providers import provider_of
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.engines.sound.sound_files import SoundWriter
from voiceapp.errors import InvalidParameter
from voiceapp.formats import duration
from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.speech.synthesis import MEDIA_TYPES, SAMPLE_RATE_HZ, UNSPEAKABLE, Spoken
from voiceapp.tasks.kinds import PartResult, Payload
from voiceapp.tasks.work.context import TaskContext
from voiceapp.tasks.work.retries import with_patience

MAX_CHARS = 200_000
QUICKEST_LETTERS_PER_S = 20
"""More letters and digits in a second no voice says of any ordinary text, at the usual pace; 12 is what they say."""
SLOWEST_RATE = 0.5
"""Asked to be slower still, the embedded voice is not."""


class Text(Schema):
    text: Annotated[Spoken, Field(min_length=1, max_length=MAX_CHARS)]
    """Text to speak."""


class Speaking(Schema):
    voice: CleanStr = ""
    """One of this server's, such as `woman`; any other name speaks with the usual one."""
    format: Literal["wav", "opus", "mp3", "flac"] = "wav"
    """`opus` comes in Ogg."""
    rate: Annotated[float, Field(ge=0.25, le=4)] = 1.0
    """1 is the usual pace."""


class SpeechTaskBody(Schema):
    model: CleanStr
    """Such as `tts-1`."""
    input: Text
    parameters: Speaking | None = None


class LongSynthesis:
    """A `Kind`."""

    path = "audio/tts/synthesis"
    title = "Speak a long text"
    description = "Speaks up to 200,000 characters into one file; `output.url` is where it can be fetched."
    body = SpeechTaskBody
    time_limit_s = 3600.0
    max_attempts = 3
    parallel = 1
    has_results = False

    async def accept(self, caller: Caller, body: SpeechTaskBody) -> Payload:
        card = catalogue().get(body.model, "tts")
        require_model(caller, card.name, "tts")
        _check_length(body.input.text, (body.parameters or Speaking()).rate)
        await require_budget(caller, card.name, "tts", characters=len(body.input.text))
        how = body.parameters or Speaking()
        return Payload(body.model, [{"text": body.input.text}], how.model_dump())

    async def run(self, part: TaskContext) -> PartResult:
        card = catalogue().get(part.model, "tts")
        text = str(part.order["text"])
        form = str(part.common["format"])
        path = part.folder / f"speech.{'ogg' if form == 'opus' else form}"
        async with charge(
            part.caller,
            operation="speech",
            model=card.name,
            family="tts",
            request_id=part.charge_id,
            lifetime=timedelta(seconds=self.time_limit_s),
            characters=len(text),
        ) as meter:
            await self._speak(part, text, path)
            meter.used(characters=len(text))  # a task that is stopped costs nothing, and its next attempt everything
        return PartResult({"url": await part.keep(path, MEDIA_TYPES[form])}, {"characters": len(text)})

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])

    async def _speak(self, part: TaskContext, text: str, path: Path) -> None:
        engine: Synthesizer = provider_of(catalogue().get(part.model, "tts"))
        writer = SoundWriter(part.common["format"], SAMPLE_RATE_HZ)
        spoken, is_silent, sound_bytes = 0, True, 0
        with path.open("wb") as sink:
            for sentence in _sentences(text):
                # Sentence by sentence: conversations get their turn at the voice in between.
                sound = await with_patience(partial(_gathered, engine, sentence, part.common))
                sound_bytes += len(sound)
                if sound_bytes > settings.TASK_MAX_AUDIO_S * SAMPLE_RATE_HZ * 2:
                    raise _too_long()
                if sound:
                    is_silent = False
                    sink.write(writer.feed(sound))
                    part.require_room(sink.tell())
                spoken += len(sentence)
                part.progress(spoken / len(text))
            if is_silent:
                raise InvalidParameter(UNSPEAKABLE)
            sink.write(writer.finish())
            sink.seek(0)
            sink.write(writer.final_head())


def _check_length(text: str, rate: float) -> None:
    """Check that a text is not too long to be spoken.

    Raises:
        InvalidParameter: if no voice is quick enough to say it in TASK_MAX_AUDIO_S.
    """
    letters = sum(map(str.isalnum, text))
    if letters / (QUICKEST_LETTERS_PER_S * max(rate, SLOWEST_RATE)) > settings.TASK_MAX_AUDIO_S:
        raise _too_long(param="input.text")


def _too_long(param: str | None = None) -> InvalidParameter:
    return InvalidParameter(
        f"The speech is longer than {duration(settings.TASK_MAX_AUDIO_S)}, the most that one task makes. Give less "
        "text, or a higher rate.",
        param=param,
    )


def _sentences(text: str) -> list[str]:
    splitter = SentenceSplitter()
    return [piece for piece in (*splitter.feed(text), *splitter.flush()) if piece.strip()]


async def _gathered(engine: Synthesizer, text: str, how: Mapping[str, Any]) -> bytes:
    not_heard_yet()
    stream: AsyncIterator[bytes] = engine.speak(
        text, voice=how["voice"], sample_rate_hz=SAMPLE_RATE_HZ, rate=how["rate"]
    )
    async with aclosing(stream) as sound:  # type: ignore[type-var]
        return b"".join([pcm async for pcm in sound])
