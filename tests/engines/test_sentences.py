"""Cutting a text that is still being written into pieces to speak."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.engines.sentences import MAX_PIECE_CHARS, SentenceSplitter


def pieces(text: str, *, first_clause_chars: int = 0) -> list[str]:
    splitter = SentenceSplitter(first_clause_chars=first_clause_chars)
    return splitter.feed(text) + splitter.flush()


def test_it_gives_each_sentence_as_soon_as_the_next_one_begins() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("It is late") == []
    assert splitter.feed(".") == []
    assert splitter.feed(" Go") == ["It is late. "]
    assert splitter.feed(" home! Now") == ["Go home! "]
    assert splitter.flush() == ["Now"]


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith met Mrs. Jones on St. Mark's square.",
        "Use a browser, e.g. Firefox, or something else, i.e. not this one.",
        "Pi is about 3.14159 and half is 0.5 of it.",
        "The train leaves at 3.30 p.m. from platform 2.",
        "It opens at 9 a.m. on weekdays.",
        "See https://example.org/a.b?c=d.e#f.g for more",
        "Ask J. R. Smith about section No. 5 of it.",
        "Bring apples, pears etc. to the table.",
        "The U.S. market is open.",
        "Version 1.2.3 came out.",
    ],
)
def test_it_does_not_cut_inside_a_sentence(sentence: str) -> None:
    assert pieces(sentence) == [sentence]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No. I did not.", ["No. ", "I did not."]),
        ("Come at 3 p.m. The door is open.", ["Come at 3 p.m. ", "The door is open."]),
        ('He said "Stop!" Then he left.', ['He said "Stop!" ', "Then he left."]),
        ("Really?! Yes… Fine.", ["Really?! ", "Yes… ", "Fine."]),
        ("It was I. You knew.", ["It was I. ", "You knew."]),
        ("1. Open the page.\n2. Press the button.", ["1. Open the page.\n", "2. Press the button."]),
        ("In all it is 42. Next one.", ["In all it is 42. ", "Next one."]),
        ("- one\n- two\n\nEnd", ["- one\n", "- two\n", "\nEnd"]),
        ("你好。今天很好！“走吧？”他说。", ["你好。", "今天很好！", "“走吧？”", "他说。"]),
    ],
)
def test_it_cuts_after_each_sentence(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_the_first_piece_may_be_a_clause_and_later_ones_are_whole_sentences() -> None:
    text = "The conversation begins here, when you press the button, and goes on. After that, it listens, and waits."
    assert pieces(text, first_clause_chars=25) == [
        "The conversation begins here, ",
        "when you press the button, and goes on. ",
        "After that, it listens, and waits.",
    ]


def test_a_clause_that_is_too_short_does_not_start_the_sound() -> None:
    text = "Well, yes, of course, we can do that. Good."
    assert pieces(text, first_clause_chars=25)[0] == "Well, yes, of course, we can do that. "


def test_a_thousands_comma_and_a_time_are_no_clause() -> None:
    text = "The whole sum of the bill is 1,250 at 10:30 today."
    assert pieces(text, first_clause_chars=25) == [text]


def test_a_text_without_sentences_is_cut_at_a_space() -> None:
    text = "word " * 200
    cut = pieces(text)
    assert "".join(cut) == text
    assert all(len(piece) <= MAX_PIECE_CHARS and piece.endswith("word ") for piece in cut)


def test_a_long_sentence_is_cut_at_its_last_clause() -> None:
    text = "one two three four, " * 12 + "five six " * 20 + "end."
    assert pieces(text)[0] == "one two three four, " * 12


def test_it_can_be_used_for_the_next_answer_after_a_flush() -> None:
    splitter = SentenceSplitter()
    splitter.feed("It was the first sentence of all, and")
    splitter.flush()
    assert splitter.feed("It is a new answer that begins, and goes") == ["It is a new answer that begins, "]


texts = st.text(alphabet=st.sampled_from(list("ab I1.,;:!?…。，\"') \n\t-A—")), max_size=900)


@given(st.lists(st.one_of(texts, st.text()), max_size=12))
def test_the_pieces_joined_are_the_text(deltas: list[str]) -> None:
    splitter = SentenceSplitter()
    out = [piece for delta in deltas for piece in splitter.feed(delta)] + splitter.flush()
    assert "".join(out) == "".join(deltas)
    assert all(piece and len(piece) <= MAX_PIECE_CHARS for piece in out)
    assert all(piece.strip() for piece in out[:-1])


@given(texts, st.lists(st.integers(min_value=1, max_value=40), min_size=1, max_size=5))
def test_the_pieces_do_not_depend_on_how_the_text_arrived(text: str, sizes: list[int]) -> None:
    splitter = SentenceSplitter()
    out, at, turn = [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        out += splitter.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    assert out + splitter.flush() == pieces(text, first_clause_chars=25)
