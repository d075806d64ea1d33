"""Interface of neural voices, and the lane that their models work in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import Protocol

from voiceapp.engines.interfaces import Samples, Voice
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.voices.pieces import Piece
from voiceapp.engines.voices.sound import Loudness
from voiceapp.engines.voices.word_times import SpokenWord
from voiceapp.errors import EngineTimeout, EngineUnavailable

LONGEST_STEP_S = 5.0
"""Time after which a model that works on one part of a piece, some milliseconds of work, is given up."""


class VoiceUnusable(EngineUnavailable):
    """A voice's files are missing, damaged or of a kind that is not known."""


class TextUnreadable(EngineUnavailable):
    """A voice's rules or its model fail on a text, or find nothing in it to say."""


class NeuralVoice(Protocol):
    """A voice to choose, and the part of a model that speaks for it."""

    @property
    def voice(self) -> Voice: ...

    @property
    def sample_rate_hz(self) -> int: ...

    @property
    def longest_piece(self) -> int:
        """Characters that it reads at one go."""

    @property
    def loudness(self) -> Loudness:
        """Loudness of its model, as far as it was heard."""

    def sound(self, piece: Piece, *, rate: float, words: list[SpokenWord]) -> AsyncGenerator[Samples, None]:
        """Sound of a piece in parts, as it is made; `rate` 1.0 is the voice's usual pace.

        A voice that knows when it says a word, in samples from the beginning, adds it to `words` before its sound.

        Raises:
            VoiceUnusable: if the model does not load.
            TextUnreadable: if it cannot say this.
            EngineTimeout: if it takes too long.
        """


async def in_lane(parts: Iterator[Samples], *, longest_step_s: float = LONGEST_STEP_S) -> AsyncGenerator[Samples, None]:
    """The parts of a sound, each made in the `voice` lane.

    Raises:
        EngineTimeout: if one takes too long, its wait for the lane apart.
        LaneFull: if too much work waits.
    """
    loop = asyncio.get_running_loop()

    def step(limit: asyncio.Timeout) -> Samples | None:
        loop.call_soon_threadsafe(_begin, limit, longest_step_s)
        return next(parts, None)

    while True:
        try:
            async with asyncio.timeout(None) as limit:
                part = await lanes().voice.run(step, limit)
        except TimeoutError as error:
            raise EngineTimeout("The voice takes too long.") from error
        if part is None:
            return
        yield part


def _begin(limit: asyncio.Timeout, longest_step_s: float) -> None:
    with suppress(RuntimeError):  # the caller has left
        limit.reschedule(asyncio.get_running_loop().time() + longest_step_s)
