"""Whether words are the reply's own."""

from __future__ import annotations

import pytest

from voiceapp.protocol.items import Message, Role
from voiceapp.protocol.speaking.echoed_words import are_echoed, said_between

REPLY = "I can tell you the time and the date, convert units, set timers, and do sums."
CAPITAL = "Paris is the capital of France."


@pytest.mark.parametrize(
    "words",
    ["tell you the time", "And the date convert", "Can tell ewe the dime", "convert you nits", "timers and do some"],
)
def test_what_is_heard_of_a_reply_is_its_echo(words: str) -> None:
    assert are_echoed(words, REPLY, is_likely=True)


@pytest.mark.parametrize(
    "words",
    [
        "What time is it?",
        "Stop.",
        "How old is the tower?",
        "Where is the next station?",
        "No, what about Lisbon?",
        "Turn on the living room lamp convert units set timers",
    ],
)
def test_what_somebody_else_says_is_not(words: str) -> None:
    assert not are_echoed(words, REPLY, is_likely=True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("What is the capital of Spain", CAPITAL),
        ("And the capital of Spain?", CAPITAL),
        ("Who is the president of France", CAPITAL),
        ("What's the date?", REPLY),
        ("What is the date", REPLY),
        ("What do you mean by units", REPLY),
    ],
)
def test_a_question_may_have_the_reply_s_words_where_no_echo_was_found(words: str, said: str) -> None:
    assert not are_echoed(words, said, is_likely=False)


@pytest.mark.parametrize("words", ["tell you the time", "And the date convert", "The date, convert you nits"])
def test_little_but_the_reply_s_words_is_its_echo_before_one_was_found(words: str) -> None:
    assert are_echoed(words, REPLY, is_likely=False)


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "said"),
    [
        (-500, 1000, "One two three four"),
        (1000, 2000, " five six. Seven"),
        (1500, 2500, " Seven eight nine."),
        (2500, 9000, " ten."),
    ],
)
def test_what_was_said_between_two_moments(start_ms: float, end_ms: float, said: str) -> None:
    reply = Message("item_1", Role.ASSISTANT, text="One two three four five six. Seven eight nine. ten.")
    reply.marks = [(28, 1500.0), (46, 2500.0)]
    assert said_between(reply, start_ms, end_ms) == said


def test_what_is_not_known_to_be_said_yet_is_as_long_as_a_voice_needs() -> None:
    reply = Message("item_1", Role.ASSISTANT, text="0123456789" * 10)
    assert len(said_between(reply, 0.0, 1500.0)) == 30
