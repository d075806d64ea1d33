from __future__ import annotations

import numpy as np
import pytest

from tests.engines.speech import noise, samples, silence, spoken
from tests.engines.tones import tone
from voiceapp.engines.embedded.mel import BANDS, log_mel
from voiceapp.engines.embedded.turn import WINDOW_SAMPLES, SmartTurn
from voiceapp.engines.espeak.voice import Espeak

pytestmark = pytest.mark.usefixtures("models")


@pytest.mark.parametrize("sentence", ["How old is the Brooklyn Bridge?", "Turn on the living room lamp."])
async def test_a_whole_sentence_ends_a_turn(espeak: Espeak, sentence: str) -> None:
    audio = np.concatenate([await spoken(espeak, sentence), silence(0.2)])
    assert await SmartTurn().end_probability(audio) > 0.5


@pytest.mark.parametrize("beginning", ["I would like to book a", "and then, um,"])
async def test_a_sentence_that_hangs_in_the_air_does_not(espeak: Espeak, beginning: str) -> None:
    audio = np.concatenate([await spoken(espeak, beginning), silence(0.2)])
    assert await SmartTurn().end_probability(audio) < 0.5


async def test_only_the_last_eight_seconds_count(espeak: Espeak) -> None:
    turn = np.concatenate([noise(8, 0.01), await spoken(espeak, "What time is it?")])
    earlier = await spoken(espeak, "I would like to book a")
    expected = await SmartTurn().end_probability(turn[-WINDOW_SAMPLES:])
    assert await SmartTurn().end_probability(np.concatenate([earlier, turn])) == expected


async def test_it_answers_about_silence_and_nothing_too() -> None:
    predictor = SmartTurn()
    await predictor.warm()
    for audio in (silence(0), silence(1)):
        assert 0 <= await predictor.end_probability(audio) <= 1


def test_the_picture_of_sound_has_eighty_bands_and_a_step_each_ten_milliseconds() -> None:
    picture = log_mel(noise(8, 0.1))
    assert picture.shape == (BANDS, 800)
    assert picture.dtype == np.float32


@pytest.mark.parametrize(("hz", "band"), [(250, 6), (1000, 26), (4000, 62)])
def test_a_tone_lights_its_band(hz: float, band: int) -> None:
    # Slaney's scale, 82 edges from 0 to 45.25 mel: 1 kHz is at 15 mel, a third of the way up.
    assert abs(int(log_mel(samples(tone(8, hz=hz))).mean(axis=1).argmax()) - band) <= 1


def test_the_picture_spans_eight_decades_at_most() -> None:
    picture = log_mel(np.concatenate([silence(4), samples(tone(4))]))
    assert picture.max() - picture.min() == pytest.approx(2.0, abs=1e-5)
