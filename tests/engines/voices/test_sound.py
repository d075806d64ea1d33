"""What is heard of a piece does not depend on how it was cut into parts."""

from __future__ import annotations

import numpy as np
import pytest

from voiceapp.engines.interfaces import Samples
from voiceapp.engines.voices.sound import EDGE_S, LEVEL, Finisher, Loudness

RATE_HZ = 16_000


def tone(seconds: float, size: float = 0.3) -> Samples:
    return (size * np.sin(2 * np.pi * 440 * np.arange(int(seconds * RATE_HZ)) / RATE_HZ)).astype(np.float32)


def hush(seconds: float) -> Samples:
    return np.zeros(int(seconds * RATE_HZ), dtype=np.float32)


PIECE = np.concatenate((hush(0.4), tone(0.3), hush(0.25), tone(0.5), hush(0.6)))


def finished(sound: Samples, *, parts_of: int, loudness: Loudness) -> Samples:
    finisher = Finisher(loudness, RATE_HZ)
    parts = [finisher.feed(sound[start : start + parts_of]) for start in range(0, len(sound), parts_of)]
    return np.concatenate((*parts, finisher.flush()))


def learned(sound: Samples = PIECE) -> Loudness:
    loudness = Loudness()
    finished(sound, parts_of=len(sound), loudness=loudness)
    return loudness


@pytest.mark.parametrize("parts_of", [100, 160, 1000, 4000, 7777])
def test_parts_sound_as_the_whole(parts_of: int) -> None:
    whole = finished(PIECE, parts_of=len(PIECE), loudness=learned())
    in_parts = finished(PIECE, parts_of=parts_of, loudness=learned())
    assert in_parts.shape == whole.shape
    assert 20 * abs(np.log10(np.square(in_parts).mean() / np.square(whole).mean())) < 1


def test_silence_around_words_is_left_out_and_pauses_stay() -> None:
    sound = finished(PIECE, parts_of=1000, loudness=learned())
    assert len(sound) / RATE_HZ == pytest.approx(0.3 + 0.25 + 0.5 + 2 * EDGE_S, abs=0.03)
    quiet = np.abs(sound) < 1e-3
    assert quiet[: int(0.02 * RATE_HZ)].all()
    assert quiet[-int(0.02 * RATE_HZ) :].all()


def test_loud_and_quiet_models_are_brought_to_one_level() -> None:
    for size in (0.05, 0.3, 0.9):
        piece = tone(1.0, size)
        sound = finished(piece, parts_of=1600, loudness=learned(piece))
        assert np.sqrt(np.square(sound).mean()) == pytest.approx(LEVEL, rel=0.1)


def test_it_begins_and_ends_without_a_click() -> None:
    sound = finished(tone(0.5), parts_of=160, loudness=learned(tone(0.5)))
    assert abs(sound[0]) < 1e-3
    assert abs(sound[-1]) < 1e-3
    assert np.abs(np.diff(sound)).max() < 0.05


@pytest.mark.parametrize("parts_of", [160, 100_000])
def test_silence_makes_no_sound(parts_of: int) -> None:
    assert len(finished(hush(1.0), parts_of=parts_of, loudness=learned())) == 0
    assert len(finished(hush(0.001), parts_of=parts_of, loudness=Loudness())) == 0
