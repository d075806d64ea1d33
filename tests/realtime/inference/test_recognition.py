"""How a task of recognition is read."""

from __future__ import annotations

import pytest

from voiceapp.errors import InvalidParameter
from voiceapp.realtime.inference.recognition import settings_of


@pytest.mark.parametrize(
    ("languages", "language"),
    [(("de", "en"), "en-GB"), ((), "fi"), (("de", "fi"), "fi")],
    ids=["the first that is known", "any, where none are named", "in the order of the hints"],
)
def test_the_hints_choose_a_language(languages: tuple[str, ...], language: str) -> None:
    hints = ["fi", "en-GB", "de"]
    opening, _, _ = settings_of({"language_hints": hints}, languages)
    assert opening["input_audio_transcription"] == {"language": language}


def test_languages_that_nobody_knows_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="de, en only"):
        settings_of({"language_hints": ["zh"]}, ("de", "en"))
