"""What one caller said in one go."""

from __future__ import annotations

import numpy as np

from voiceapp.protocol.audio import FRAME_MS, FRAME_SAMPLES
from voiceapp.protocol.hearing.utterance import MAX_UTTERANCE_MS, Utterance

FRAME = np.full(FRAME_SAMPLES, 16384, dtype=np.int16)


def spoken(ms: int, utterance: Utterance | None = None) -> Utterance:
    utterance = utterance or Utterance("item_1", 0)
    for _ in range(ms // FRAME_MS):
        utterance.append(FRAME, is_speech=True, now=1.0)
    return utterance


def test_it_gives_its_audio_as_floats() -> None:
    audio = spoken(64).audio()
    assert audio.dtype == np.float32
    assert audio.shape == (2 * FRAME_SAMPLES,)
    assert set(audio.tolist()) == {0.5}
    assert Utterance("item_1", 0).audio().shape == (0,)


def test_less_than_a_quarter_second_of_speech_is_noise() -> None:
    assert not spoken(224).is_speech
    assert spoken(256).is_speech


def test_words_count_only_for_the_audio_they_were_read_from() -> None:
    utterance = spoken(640)
    utterance.keep_words("What time")
    assert utterance.words == "What time"
    utterance.go_on()
    assert utterance.words is None


def test_latencies_count_from_the_last_speech_else_from_the_end() -> None:
    utterance = Utterance("item_1", 0)
    utterance.append(FRAME, is_speech=False, now=1.0)
    utterance.ended_at = 2.0
    assert utterance.origin == 2.0
    utterance.append(FRAME, is_speech=True, now=1.5)
    assert utterance.origin == 1.5


def test_the_words_that_two_readings_agree_on_are_stable() -> None:
    utterance = Utterance("item_1", 0)
    assert utterance.partial("what time", 0.0) == ("", "what time")
    assert utterance.partial("what time is", 0.0) == ("what time", " is")
    assert utterance.partial("what dime is it", 0.0) == ("what", " dime is it")
    assert utterance.partial("", 0.0) == ("", "")


def test_partial_readings_become_rarer_as_the_utterance_grows() -> None:
    utterance = Utterance("item_1", 0)
    asked_at = []
    while not utterance.is_full:
        spoken(FRAME_MS, utterance)
        if utterance.wants_partial():
            asked_at.append(utterance.length_ms)
    assert utterance.length_ms == MAX_UTTERANCE_MS
    assert asked_at[:3] == [512, 1024, 1536]
    assert len(asked_at) < 50
    assert asked_at[-1] - asked_at[-2] > 5000


def test_it_wants_no_partial_reading_while_another_goes_on_or_the_words_are_known() -> None:
    utterance = spoken(640)
    utterance.read("show")
    assert not utterance.wants_partial()
    utterance.read("pause")
    assert not utterance.wants_partial()
    utterance.keep_words("Hello")
    assert not utterance.wants_partial()
    utterance.go_on()
    assert utterance.wants_partial()
