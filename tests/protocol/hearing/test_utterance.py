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
