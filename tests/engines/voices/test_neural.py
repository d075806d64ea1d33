"""Work of neural voices in the lane that they share with recognition."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator

import numpy as np
import pytest

from tests.engines.speech import pcm
from voiceapp.engines.interfaces import Samples, Voice
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.voices.neural import in_lane
from voiceapp.engines.voices.pieces import Piece
from voiceapp.engines.voices.sound import Loudness
from voiceapp.engines.voices.synthesizer import EmbeddedSpeech
from voiceapp.engines.voices.word_times import SpokenWord
from voiceapp.errors import EngineTimeout

LIMIT_S = 0.1


@pytest.mark.parametrize("is_busy", [True, False])
async def test_only_work_is_timed_and_not_the_wait_for_it(is_busy: bool) -> None:
    free = threading.Event()

    def sound() -> Iterator[Samples]:
        yield np.zeros(240, dtype=np.float32)
        if not is_busy:
            free.wait()

    busy = [asyncio.create_task(lanes().voice.run(free.wait)) for _ in range(lanes().voice.threads * is_busy)]
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(3 * LIMIT_S, free.set)
    parts = in_lane(sound(), longest_step_s=LIMIT_S)
    assert len(await anext(parts)) == 240
    with pytest.raises(StopAsyncIteration if is_busy else EngineTimeout):
        await anext(parts)
    free.set()
    await asyncio.gather(*busy)


class Stalling:
    """A `NeuralVoice` that makes so many parts of each piece and then takes too long."""

    voice = Voice("stalling", "Stalling", "en")
    sample_rate_hz = 24_000
    longest_piece = 220

    def __init__(self, parts: int) -> None:
        self.loudness = Loudness()
        self.loudness.learn(np.full(100, 0.1, dtype=np.float32))
        self._parts = parts

    async def sound(self, piece: Piece, *, rate: float, words: list[SpokenWord]) -> AsyncGenerator[Samples, None]:
        for _ in range(self._parts):
            yield np.sin(np.arange(24_000, dtype=np.float32) / 20)
        raise EngineTimeout("The voice takes too long.")


async def test_a_piece_of_which_a_part_was_heard_is_not_spoken_again() -> None:
    speech = EmbeddedSpeech()
    speech._neural["stalling"] = Stalling(1)
    sound = speech.speak("Hello there.", voice="stalling", sample_rate_hz=24_000)
    assert await anext(sound)
    with pytest.raises(EngineTimeout):
        _ = [pcm async for pcm in sound]
    speech._neural["stalling"] = Stalling(0)
    assert await pcm(speech, "Hello there.", voice="stalling")
    await speech.close()
