"""A recording made into text: decoded, divided where its speaker pauses, recognized stretch by stretch."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from voiceapp.accounts import ledger
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.metering import charge
from voiceapp.engines.catalogue import catalogue
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Recognizer
from voiceapp.engines.lanes import lanes
from voiceapp.engines.sound_files import read_samples
from voiceapp.engines.stretches import speech_in

Result = TypeVar("Result")

MAX_AUDIO_S = 900.0
"""What is read of one file: its samples take 64 kB a second."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of speech and its words."""

    start_s: float
    end_s: float
    text: str
    confidence: float
    """In [0, 1]."""


@dataclass(frozen=True, slots=True)
class Transcript:
    duration_s: float
    language: str
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        return " ".join(segment.text for segment in self.segments)


async def segments(
    caller: Caller, model: str, file: BinaryIO, *, language: str | None, request_id: str
) -> AsyncGenerator[Segment | Transcript, None]:
    """Each stretch as soon as it is recognized, and at the end the whole. Closing it ends the work.

    Its seconds are in the ledger before the first stretch comes.

    Raises:
        InvalidParameter, ModelNotFound, AccessDenied, Throttled, EngineError: as their classes say.
    """
    card = catalogue().get(model, "asr")
    recognizer: Recognizer = catalogue().provider(card)
    async with charge(
        caller, operation="transcription", model=card.name, family="asr", reserve_tokens=0, request_id=request_id
    ):
        audio = await _stoppable(
            lambda stop: lanes().batch.run(lambda: read_samples(file, max_s=MAX_AUDIO_S, stop=stop))
        )
        stretches = await _stoppable(lambda stop: lanes().batch.run(lambda: speech_in(audio, stop)))
        duration_s = len(audio) / ENGINE_SAMPLE_RATE_HZ
        await ledger.write(
            caller,
            operation="transcription",
            model=card.name,
            family="asr",
            request_id=request_id,
            quantities={"audio_seconds": math.ceil(duration_s)},
        )
        found: list[Segment] = []
        spoken = language or "en"
        for stretch in stretches:
            heard = await recognizer.recognize(audio[stretch.start : stretch.end], language=language)
            spoken = heard.language
            if heard.text:
                found.append(Segment(stretch.start_s, stretch.end_s, heard.text, heard.confidence))
                yield found[-1]
        yield Transcript(duration_s, spoken, tuple(found))


async def transcript(pieces: AsyncGenerator[Segment | Transcript, None]) -> Transcript:
    """The whole of it. Raises whatever stops the pieces."""
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Transcript):
                return piece
    raise AssertionError("the last piece is the transcript")


async def _stoppable(work: Callable[[threading.Event], Awaitable[Result]]) -> Result:
    """Wait for work in a lane; tells it to stop when nobody waits any more."""
    stop = threading.Event()
    try:
        return await work(stop)
    finally:
        stop.set()
