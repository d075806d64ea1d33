"""A recording made into text: decoded, divided where its speaker pauses, recognized segment by segment."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, TypeVar

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import charge
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Samples
from voiceapp.engines.languages import is_one_of
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.models.providers import provider_of
from voiceapp.engines.sound.sound_files import samples_of
from voiceapp.engines.sound.speech_segments import Segmenter, SpeechSegment
from voiceapp.errors import InvalidParameter
from voiceapp.formats import language_code
from voiceapp.protocol.wire.values import DETECTED
from voiceapp.speech.room import in_room

Result = TypeVar("Result")
InTurn = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Runs a call when there is room for it."""

MAX_AUDIO_S = 900.0
"""Longest recording while the caller waits: a minute takes a second or two."""

LANGUAGE_S = 15.0
"""Speech in one language after which the rest of a recording is read in that; before, each segment is in its own."""


@dataclass(frozen=True, slots=True)
class Segment:
    start_s: float
    end_s: float
    text: str
    confidence: float
    """In [0, 1]."""
    of_s: float
    """Length of the whole recording."""


@dataclass(frozen=True, slots=True)
class Transcript:
    duration_s: float
    language: str
    segments: tuple[Segment, ...]
    is_translated: bool = False

    @property
    def text(self) -> str:
        return " ".join(segment.text for segment in self.segments)


def language_of(model: str, named: Sequence[str]) -> str | None:
    """The first of some languages that a model understands; None, which detects it, if none is named.

    Raises:
        InvalidParameter: if it understands none of them.
        ModelNotFound: if this server has no model of that name.
    """
    card = catalogue().get(model, "asr")
    given = [language for language in named if language.lower() not in ("", DETECTED)]
    known = next((language for language in given if is_one_of(language, card.languages)), None)
    if not card.languages:
        return given[0] if given else None
    if given and known is None:
        raise InvalidParameter(
            f"{model[:80]} understands {', '.join(card.languages)} only, not '{given[0][:20]}'.", param="language"
        )
    return known and language_code(known)


async def at_once(call: Callable[[], Awaitable[Any]]) -> Any:
    """An InTurn: what there is no room for now is refused."""
    return await call()


async def segments(
    caller: Caller,
    model: str,
    file: BinaryIO,
    *,
    language: str | None,
    translates: bool = False,
    request_id: str,
    terms: Sequence[str] = (),
    max_s: float = MAX_AUDIO_S,
    in_turn: InTurn = at_once,
    note: Callable[[str], None] = lambda _: None,
    is_charged_first: bool = True,
) -> AsyncGenerator[Segment | Transcript, None]:
    """Each segment as soon as it is recognized, or translated into English, and at the end the whole.

    Closing it ends the work.

    The file is read twice: before the first segment comes, it was found to be whole, and its seconds are in the ledger.
    Unless `is_charged_first`, they are when the last segment was heard; work that is stopped before costs nothing.
    Little of it is in memory at a time. `note` takes which model hears each segment, before it comes.

    Raises:
        InvalidParameter: if the file cannot be read, or is too long, or the model does not translate.
        ModelNotFound: if the model does not exist.
        AccessDenied: if the key may not use the model.
        Throttled: if a rate, quota or budget is used up.
        EngineError: if the engine fails, also between segments.
    """
    card = catalogue().get(model, "asr")
    if translates and not card.translates:
        raise InvalidParameter(f"{model[:80]} does not translate.", param="model")
    recognizer = provider_of(card)
    read = recognizer.translate if translates else partial(recognizer.recognize, terms=terms)
    language = language_of(model, [language or ""])
    async with charge(
        caller, operation="transcription", model=card.name, family="asr", request_id=request_id, audio_seconds=1
    ) as meter:
        async with aclosing(_each(len, file, max_s, in_turn)) as sizes:
            duration_s = sum([size async for size in sizes]) / ENGINE_SAMPLE_RATE_HZ
        await meter.reserve(audio_seconds=math.ceil(duration_s))
        if is_charged_first:
            meter.used(audio_seconds=math.ceil(duration_s))
            await meter.settle()
        found: list[Segment] = []
        heard_s: defaultdict[str, float] = defaultdict(float)
        note(card.origin)
        async with aclosing(_segments(file, max_s, in_turn)) as segments:
            async for segment in segments:
                heard = await in_turn(partial(read, segment.samples, language=language))
                if heard.text:
                    heard_s[heard.language] += segment.end_s - segment.start_s
                if heard.is_detected and heard_s[heard.language] >= LANGUAGE_S:
                    language = heard.language
                note(heard.served_by or card.origin)
                if heard.text:
                    found.append(Segment(segment.start_s, segment.end_s, heard.text, heard.confidence, duration_s))
                    yield found[-1]
        meter.used(audio_seconds=math.ceil(duration_s))
        await meter.settle()
        spoken = language or max(heard_s, key=heard_s.__getitem__, default="en")
        yield Transcript(duration_s, "en" if translates else spoken, tuple(found), is_translated=translates)


in_request = in_room(segments)
"""The `segments` of a recording while its caller waits."""


async def transcript(pieces: AsyncGenerator[Segment | Transcript, None]) -> Transcript:
    """The whole of it. Raises whatever stops the pieces."""
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Transcript):
                return piece
    raise AssertionError("the last piece is the transcript")


async def _segments(file: BinaryIO, max_s: float, in_turn: InTurn) -> AsyncGenerator[SpeechSegment, None]:
    segmenter: Segmenter = await in_turn(lambda: lanes().batch.run(Segmenter))
    async with aclosing(_each(segmenter.feed, file, max_s, in_turn)) as heard:
        async for some in heard:
            for segment in some:
                yield segment
    for segment in segmenter.finish():
        yield segment


async def _each(
    work: Callable[[Samples], Result], file: BinaryIO, max_s: float, in_turn: InTurn
) -> AsyncGenerator[Result, None]:
    """Yield the result of `work` for each piece of a file; the lane is free between pieces."""
    stop = threading.Event()
    pieces = samples_of(file, max_s=max_s, stop=stop)

    def one() -> Result | None:
        piece = next(pieces, None)
        return None if piece is None else work(piece)

    try:
        while (made := await in_turn(lambda: lanes().batch.run(one))) is not None:
            yield made
    finally:
        stop.set()
