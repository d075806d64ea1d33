"""Stop sequences, however the answer is cut into pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voiceapp.generation.stop_sequences import StopFilter


def passed(pieces: list[str], stops: list[str]) -> tuple[str, bool]:
    stopper = StopFilter(stops)
    text = "".join(stopper.feed(piece) for piece in pieces)
    return text + stopper.flush(), stopper.has_stopped


@given(
    st.lists(st.text("ab\n", max_size=6), max_size=10), st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3)
)
def test_it_passes_everything_before_the_first_stop(pieces: list[str], stops: list[str]) -> None:
    text = "".join(pieces)
    text_passed, has_stopped = passed(pieces, stops)
    assert text.startswith(text_passed)
    assert not any(stop in text_passed for stop in stops)
    assert has_stopped == any(stop in text for stop in stops)
    assert has_stopped or text_passed == text
    assert not has_stopped or any(text.startswith(text_passed + stop) for stop in stops)


def test_it_holds_nothing_back_that_cannot_become_a_stop() -> None:
    stopper = StopFilter(["\n\nUser"])
    assert stopper.feed("All of it.") == "All of it."
    assert stopper.feed(" More\n") == " More"
    assert stopper.feed("lines") == "\nlines"


def test_it_says_nothing_after_the_stop() -> None:
    stopper = StopFilter(["END"])
    assert stopper.feed("one EN") == "one "
    assert stopper.feed("D two") == ""
    assert stopper.feed("three") == ""
    assert stopper.flush() == ""


def test_it_passes_on_what_was_no_stop_after_all() -> None:
    stopper = StopFilter(["END"])
    assert stopper.feed("the EN") == "the "
    assert stopper.flush() == "EN"
