"""When a turn begins, pauses, goes on and ends."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.protocol.audio import FRAME_MS
from voiceapp.protocol.configuration import TurnDetection
from voiceapp.protocol.hearing.clauses import Clause
from voiceapp.protocol.hearing.turns import End, Onset, Pause, Resume, Signal, StillQuiet, TurnDetector
from voiceapp.protocol.states import TurnState


def feed(detector: TurnDetector, *spans: tuple[float, int]) -> list[tuple[int, Signal]]:
    probabilities = itertools.chain.from_iterable([probability] * frames for probability, frames in spans)
    signals = ((number, detector.push(probability)) for number, probability in enumerate(probabilities, 1))
    return [(number, signal) for number, signal in signals if signal is not None]


def judged(detector: TurnDetector, probability: float, found: Clause | None = Clause.UNKNOWN) -> End | None:
    """What follows from a result of the turn model, with words that say so much."""
    detector.asked()
    detector.judged(probability)
    return detector.decide(found, 0)


def test_three_frames_of_speech_begin_a_turn() -> None:
    assert feed(TurnDetector(TurnDetection()), (0.9, 10)) == [(3, Onset(3))]


def test_shorter_bursts_are_clicks() -> None:
    assert feed(TurnDetector(TurnDetection()), *[(0.9, 2), (0.1, 1)] * 20) == []


def test_without_a_fixed_silence_it_asks_again_and_again_and_ends_at_the_cap() -> None:
    signals = feed(TurnDetector(TurnDetection()), (0.9, 10), (0.0, 40))
    assert signals == [
        (3, Onset(3)),
        (10 + 96 // FRAME_MS, Pause()),
        *((10 + silence_ms // FRAME_MS, StillQuiet()) for silence_ms in (128, 256, 352, 512, 640)),
        (10 + 25, End(25 * FRAME_MS)),
    ]


@pytest.mark.parametrize("silence_ms", [200, 500, 800, 6000])
def test_a_fixed_silence_wins_over_the_turn_model(silence_ms: int) -> None:
    detector = TurnDetector(TurnDetection(silence_duration_ms=silence_ms))
    assert not detector.asks_model
    signals = feed(detector, (0.9, 10), (0.0, 8))
    assert judged(detector, 1.0) is None
    signals += feed(detector, (0.0, 400))
    kinds = [type(signal) for _, signal in signals]
    assert kinds == [Onset, Pause, End]
    end = signals[-1][1]
    assert isinstance(end, End)
    assert silence_ms <= end.silence_ms < silence_ms + FRAME_MS


def test_the_turn_model_ends_the_turn_early() -> None:
    detector = TurnDetector(TurnDetection())
    feed(detector, (0.9, 10), (0.0, 7))
    assert judged(detector, 0.9) == End(7 * FRAME_MS)
    assert detector.state is TurnState.QUIET
    assert judged(detector, 0.9) is None


@pytest.mark.parametrize(
    ("silences", "results", "end"),
    [
        ((7,), (0.7,), None),
        ((7, 3), (0.7, 0.2), None),
        ((7, 3), (0.7, 0.4), 10),
        ((7, 3, 3, 3), (0.1, 0.02, 0.03, 0.1), None),
        ((7, 3, 3, 2), (0.1, 0.02, 0.03, 0.3), 15),
        ((7, 3, 3, 2), (0.02, 0.03, 0.01, 0.05), None),
        ((1, 1, 2, 8), (0.02, 0.02, 0.05, 0.12), 12),
        ((1, 2, 1, 8), (0.02, 0.05, 0.05, 0.1), None),
        ((2, 2), (0.6, 0.5), 4),
    ],
    ids=[
        "once is not enough",
        "in doubt",
        "by the mean",
        "sure so far",
        "in doubt for long",
        "sure that it goes on",
        "against an end, early",
        "and later",
        "for an end, early",
    ],
)
def test_the_mean_of_several_results_is_believed(
    silences: tuple[int, ...], results: tuple[float, ...], end: int | None
) -> None:
    detector = TurnDetector(TurnDetection())
    feed(detector, (0.9, 10))
    found = None
    for frames, result in zip(silences, results, strict=True):
        feed(detector, (0.0, frames))
        found = judged(detector, result)
    assert found == (None if end is None else End(end * FRAME_MS))


@pytest.mark.parametrize(
    ("frames", "probability", "found", "is_end"),
    [
        (2, 0.96, Clause.UNKNOWN, True),
        (2, 0.93, Clause.UNKNOWN, False),
        (2, 0.6, Clause.WHOLE, True),
        (2, 0.99, None, False),
        (15, 0.99, Clause.OPEN, False),
        (16, 0.99, Clause.OPEN, True),
        (19, 0.89, Clause.OPEN, False),
        (20, 0.89, Clause.OPEN, True),
        (7, 0.99, None, False),
        (11, 0.99, None, True),
    ],
    ids=[
        "sure",
        "not quite",
        "a question",
        "not read",
        "a call",
        "after a call",
        "open",
        "open for long",
        "not read yet",
        "never read",
    ],
)
def test_the_words_say_how_sure_the_sound_must_be(
    frames: int, probability: float, found: Clause | None, is_end: bool
) -> None:
    detector = TurnDetector(TurnDetection())
    feed(detector, (0.9, 10), (0.0, frames))
    assert (judged(detector, probability, found) is not None) == is_end


@pytest.mark.parametrize(
    ("pause_frames", "speech_ms", "is_end"), [(9, 4000, False), (5, 4000, True), (9, 2900, True), (9, 3200, True)]
)
def test_who_is_telling_something_pauses_longer(pause_frames: int, speech_ms: int, is_end: bool) -> None:
    detector = TurnDetector(TurnDetection())
    feed(detector, (0.9, 10), (0.0, pause_frames), (0.9, 10), (0.0, 13))
    detector.judged(0.99)
    assert (detector.decide(Clause.UNKNOWN, speech_ms) is not None) == is_end


def test_what_was_thought_of_an_earlier_pause_does_not_count() -> None:
    detector = TurnDetector(TurnDetection())
    feed(detector, (0.9, 10), (0.0, 7))
    assert judged(detector, 0.7) is None
    feed(detector, (0.9, 4), (0.0, 7))
    assert judged(detector, 0.7) is None


def test_the_turn_model_has_no_say_while_the_caller_speaks() -> None:
    detector = TurnDetector(TurnDetection())
    feed(detector, (0.9, 10))
    assert judged(detector, 1.0) is None


def test_two_frames_of_speech_resume_the_turn() -> None:
    detector = TurnDetector(TurnDetection())
    signals = feed(detector, (0.9, 10), (0.0, 3), (0.9, 1), (0.0, 1), (0.9, 2))
    assert [type(signal) for _, signal in signals] == [Onset, Pause, StillQuiet, Resume]
    assert detector.silence_ms == 0


def test_murmur_between_release_and_threshold_keeps_a_turn_but_begins_none() -> None:
    assert feed(TurnDetector(TurnDetection()), (0.4, 50)) == []
    assert feed(TurnDetector(TurnDetection()), (0.9, 3), (0.4, 50)) == [(3, Onset(3))]


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.2, 1.0])
def test_silence_is_silence_at_every_threshold(threshold: float) -> None:
    assert feed(TurnDetector(TurnDetection(threshold=threshold)), (0.01, 100)) == []
    signals = feed(TurnDetector(TurnDetection(threshold=threshold)), (1.0, 10), (0.01, 100))
    assert isinstance(signals[-1][1], End)


def test_new_settings_do_not_end_a_turn_in_progress() -> None:
    detector = TurnDetector(TurnDetection())
    feed(detector, (0.9, 10), (0.0, 10))
    detector.configure(TurnDetection(silence_duration_ms=400))
    assert detector.state is TurnState.PAUSED
    assert feed(detector, (0.0, 10)) == [(3, End(13 * FRAME_MS))]


def test_an_ended_turn_leaves_nothing_behind() -> None:
    detector = TurnDetector(TurnDetection())
    feed(detector, (0.9, 10))
    assert detector.end() == End(0)
    assert detector.end() is None
    assert feed(detector, (0.9, 2), (0.0, 1)) == []


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 40)), max_size=30),
    st.none() | st.integers(200, 6000),
    st.floats(-1, 1),
)
def test_signals_come_in_a_legal_order(
    spans: list[tuple[float, int]], silence_ms: int | None, threshold: float
) -> None:
    detector = TurnDetector(TurnDetection(threshold=threshold, silence_duration_ms=silence_ms))
    after: dict[type[Signal] | None, set[type[Signal]]] = {
        None: {Onset}, Onset: {Pause}, Pause: {Resume, StillQuiet, End}, StillQuiet: {StillQuiet, Resume, End},
        Resume: {Pause}, End: {Onset},
    }  # fmt: skip
    before: type[Signal] | None = None
    for _, signal in feed(detector, *spans):
        assert type(signal) in after[before]
        before = type(signal)
