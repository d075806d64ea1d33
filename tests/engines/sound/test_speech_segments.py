"""Where somebody speaks: by a detector that hears loudness, and by the real one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.engines.speech import samples
from tests.engines.tones import tone
from voiceapp.engines.embedded import vad
from voiceapp.engines.interfaces import VAD_FRAME_SAMPLES, Samples, VoiceDetector
from voiceapp.engines.models import weights
from voiceapp.engines.sound.speech_segments import MAX_FRAMES, PADDING_FRAMES, PAUSE_FRAMES, Segmenter, SpeechSegment


class Loudness:
    """A `VoiceDetector` for made-up sound: how loud a frame is, it takes for a probability."""

    def probability(self, frame: Any) -> float:
        return float(frame.mean())

    async def probability_live(self, frame: Any) -> float:
        return self.probability(frame)

    def reset(self) -> None:
        """It remembers nothing."""


def segments(audio: Samples, *, piece: int, detector: Callable[[], VoiceDetector]) -> list[SpeechSegment]:
    """Those of a recording that comes in pieces of so many samples."""
    segmenter = Segmenter(detector)
    found = [segment for at in range(0, len(audio), piece) for segment in segmenter.feed(audio[at : at + piece])]
    found += segmenter.finish()
    assert all(np.array_equal(segment.samples, audio[segment.start : segment.end]) for segment in found)
    return found


def heard(*frames: tuple[float, int]) -> list[tuple[int, int]]:
    """Stretches, in frames, of so loud a sound for so many frames, one after the other."""
    levels = np.concatenate([np.full(count, level, dtype=np.float32) for level, count in frames])
    audio = np.repeat(levels, VAD_FRAME_SAMPLES)
    found = segments(audio, piece=len(audio), detector=Loudness)
    for piece in (VAD_FRAME_SAMPLES // 3, 40 * VAD_FRAME_SAMPLES + 1):
        again = segments(audio, piece=piece, detector=Loudness)
        assert [(segment.start, segment.end) for segment in again] == [(each.start, each.end) for each in found]
    return [(segment.start // VAD_FRAME_SAMPLES, segment.end // VAD_FRAME_SAMPLES) for segment in found]


def test_silence_holds_no_speech() -> None:
    assert heard((0.0, 100)) == []
    assert heard((0.4, 100)) == []


def test_a_segment_is_padded() -> None:
    assert heard((0, 50), (1, 30), (0, 50)) == [(50 - PADDING_FRAMES, 80 + PADDING_FRAMES)]


def test_a_short_pause_divides_nothing() -> None:
    assert heard((1, 20), (0, PAUSE_FRAMES - 1), (1, 20), (0, 40)) == [(0, 39 + PAUSE_FRAMES + PADDING_FRAMES)]


def test_a_long_pause_divides() -> None:
    first, second = heard((1, 20), (0, 40), (1, 20))
    assert first == (0, 20 + PADDING_FRAMES)
    assert second == (60 - PADDING_FRAMES, 80)


def test_a_faint_syllable_ends_nothing() -> None:
    assert len(heard((1, 20), (0.4, 40), (1, 20))) == 1


def test_long_speech_is_divided_and_nothing_is_heard_twice() -> None:
    found = heard((1, 3 * MAX_FRAMES))
    assert len(found) >= 3
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(found))
    assert (found[0][0], found[-1][1]) == (0, 3 * MAX_FRAMES)
    assert max(end - start for start, end in found) <= MAX_FRAMES + 2 * PADDING_FRAMES


def test_times_are_in_seconds() -> None:
    segment = SpeechSegment(8_000, np.zeros(16_000, dtype=np.float32))
    assert (segment.start_s, segment.end_s) == (0.5, 1.5)


def test_the_real_detector_hears_no_speech_in_a_tone() -> None:
    assert not weights.missing(), "run: python manage.py fetch_models"
    assert segments(samples(tone(2)), piece=10_000, detector=vad.SileroDetector) == []
