"""How durations read."""

from __future__ import annotations

import pytest

from voiceapp.formats import duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a second"),
        (1, "1 second"),
        (20, "20 seconds"),
        (60, "1 minute"),
        (90.9, "1 minute 30 seconds"),
        (180, "3 minutes"),
        (7200, "2 hours"),
        (3661, "1 hour 1 minute 1 second"),
    ],
)
def test_a_duration_reads_as_people_say_it(seconds: float, words: str) -> None:
    assert duration(seconds) == words
