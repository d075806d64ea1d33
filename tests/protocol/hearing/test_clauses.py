"""What the words of a turn say about its end."""

from __future__ import annotations

import pytest

from voiceapp.protocol.hearing.clauses import Clause, clause


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Hello.", Clause.OPEN),
        ("Hello, Robin.", Clause.OPEN),
        ("Wait, no.", Clause.OPEN),
        ("Tell me a", Clause.OPEN),
        ("If it rains tomorrow.", Clause.OPEN),
        ("If it rains tomorrow, where can I go?", Clause.UNKNOWN),
        ("Robin.", Clause.UNSURE),
        ("Two people,", Clause.UNSURE),
        ("What is the weather in Paris?", Clause.WHOLE),
        ("Hello, Robin, are you there?", Clause.WHOLE),
        ("Tell me a joke.", Clause.UNKNOWN),
        ("What your country can do for you?", Clause.UNKNOWN),
        ("", Clause.UNKNOWN),
    ],
)
def test_words_open_and_close_a_turn(words: str, found: Clause) -> None:
    assert clause(words, "en") is found


def test_a_language_without_lists_is_judged_by_its_sound() -> None:
    assert clause("Hello.", "en-GB") is Clause.OPEN
    assert clause("Hallo.", "de") is Clause.UNKNOWN
