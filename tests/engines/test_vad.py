from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

from tests.engines.speech import noise, silence, spoken
from voiceapp.engines.embedded import vad
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import VAD_FRAME_SAMPLES, Samples, VoiceDetector

Result = TypeVar("Result")

pytestmark = pytest.mark.usefixtures("models")


def probabilities(detector: VoiceDetector, audio: Samples) -> np.ndarray:
    frames = audio[: len(audio) // VAD_FRAME_SAMPLES * VAD_FRAME_SAMPLES].reshape(-1, VAD_FRAME_SAMPLES)
    return np.array([detector.probability(frame) for frame in frames])


async def test_it_tells_speech_from_the_silence_around_it(espeak: Espeak) -> None:
    speech = await spoken(espeak, "The living room is on the second floor.")
    heard = probabilities(vad.SileroDetector(), np.concatenate([silence(1), speech, silence(1)]))
    before, during, after = np.split(heard, [30, 30 + len(speech) // VAD_FRAME_SAMPLES])
    assert before.max() < 0.3
    assert np.mean(during > 0.5) > 0.8
    assert after[8:].max() < 0.3


def test_it_does_not_take_noise_for_speech() -> None:
    assert np.mean(probabilities(vad.SileroDetector(), noise(3, 0.05)) > 0.5) < 0.05


async def test_silence_after_silence_is_not_looked_at_and_speech_behind_it_is_heard_the_same(espeak: Espeak) -> None:
    speech = await spoken(espeak, "The living room is on the second floor.")
    quiet = noise(3, 1e-4)
    detector = vad.SileroDetector()
    heard = probabilities(detector, np.concatenate([speech, quiet]))
    after = heard[len(speech) // VAD_FRAME_SAMPLES + 20 :]
    assert len(after) > 60
    assert not after.any(), "zero is what nobody asked the model about"
    again = probabilities(detector, speech)
    assert np.mean(again > 0.5) == pytest.approx(np.mean(heard[: len(again)] > 0.5), abs=0.1)


def test_quiet_sound_that_is_not_silence_is_looked_at() -> None:
    assert all(probabilities(vad.SileroDetector(), noise(2, 2 * vad.INAUDIBLE)))


async def test_a_reset_detector_hears_as_a_fresh_one(espeak: Espeak) -> None:
    speech = await spoken(espeak, "Good morning.")
    detector = vad.SileroDetector()
    first = probabilities(detector, speech)
    assert not np.array_equal(probabilities(detector, speech), first), "it keeps what it heard"
    detector.reset()
    assert np.array_equal(probabilities(detector, speech), first)


async def test_conversations_do_not_hear_one_another(espeak: Espeak) -> None:
    speech = (await spoken(espeak, "Good morning to you."))[: 20 * VAD_FRAME_SAMPLES].reshape(-1, VAD_FRAME_SAMPLES)
    hum = noise(1, 0.1)[: speech.size].reshape(speech.shape)
    alone = probabilities(vad.SileroDetector(), speech.ravel())
    one, other = vad.SileroDetector(), vad.SileroDetector()
    together = []
    for frame, humming in zip(speech, hum, strict=True):
        together.append(one.probability(frame))
        other.probability(humming)
    assert np.array_equal(alone, together)


class StillSelector(selectors.DefaultSelector):
    """Moves the clock on in place of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(0)


def in_virtual_time(main: Coroutine[Any, Any, Result]) -> Result:
    """Run it on a loop whose clock stands still while anything is left to do, however busy the machine."""
    selector = StillSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main)


class Crowd:
    """Callers who speak at the same time, each in frames of 32 ms from a moment of its own on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[int] = []
        self.waits_s: list[float] = []
        judge = vad.SileroDetector.judge

        def counted(one: vad.SileroDetector, together: Sequence[vad.SileroDetector]) -> list[float]:
            self.batches.append(len(together))
            return judge(one, together)

        monkeypatch.setattr(vad.SileroDetector, "judge", counted)

    async def hear(self, said: Sequence[Samples], *, every_s: float = 0.032) -> list[list[float]]:
        async def all_at_once() -> list[list[float]]:
            return await asyncio.gather(*(self._caller(n, len(said), audio, every_s) for n, audio in enumerate(said)))

        return await asyncio.to_thread(in_virtual_time, all_at_once())

    async def _caller(self, number: int, of: int, audio: Samples, every_s: float) -> list[float]:
        loop = asyncio.get_running_loop()
        detector = vad.SileroDetector()
        found: list[float] = []
        for frame in audio[: len(audio) // VAD_FRAME_SAMPLES * VAD_FRAME_SAMPLES].reshape(-1, VAD_FRAME_SAMPLES):
            await asyncio.sleep((len(found) + number / of) * every_s - loop.time())
            asked = loop.time()
            found.append(await detector.probability_live(frame))
            self.waits_s.append(loop.time() - asked)
        return found


async def test_callers_in_a_crowd_are_heard_together_and_each_as_if_alone(
    espeak: Espeak, monkeypatch: pytest.MonkeyPatch
) -> None:
    speech = (await spoken(espeak, "The living room is on the second floor."))[: 40 * VAD_FRAME_SAMPLES]
    said = [np.roll(speech, number * 1000) * np.float32((1 + number) / 16) for number in range(16)]
    alone = [probabilities(vad.SileroDetector(), audio).tolist() for audio in said]
    crowd = Crowd(monkeypatch)
    assert await crowd.hear(said) == alone
    assert sum(crowd.batches) / len(crowd.batches) > 2
    assert max(crowd.waits_s) <= 0.008


async def test_a_few_callers_and_frames_that_come_late_do_not_wait(
    espeak: Espeak, monkeypatch: pytest.MonkeyPatch
) -> None:
    speech = (await spoken(espeak, "The living room is on the second floor."))[: 40 * VAD_FRAME_SAMPLES]
    few = Crowd(monkeypatch)
    await few.hear([speech] * 3)
    late = Crowd(monkeypatch)
    await late.hear([speech] * 16, every_s=0.001)
    assert set(few.batches + late.batches) == {1}
    assert not any(few.waits_s + late.waits_s)


async def test_a_caller_who_leaves_a_crowd_keeps_no_other_waiting(espeak: Espeak) -> None:
    frame = (await spoken(espeak, "Good morning to you."))[:VAD_FRAME_SAMPLES]
    crowd = [vad.SileroDetector() for _ in range(200)]
    asked = [asyncio.create_task(each.probability_live(frame)) for each in crowd]
    await asyncio.sleep(0)
    assert not all(task.done() for task in asked)
    asked[-1].cancel()
    found = await asyncio.gather(*asked[:-1])
    assert len(set(found)) == 1
    assert asked[-1].cancelled()


def test_it_refuses_a_frame_of_another_length() -> None:
    with pytest.raises(ValueError, match="512"):
        vad.SileroDetector().probability(silence(0.02))
