"""The setting SPEECH_LANGUAGES."""

from __future__ import annotations

import pytest

from voiceapp.catalogue.languages import WHISPER_LANGUAGES, speech_languages


@pytest.mark.parametrize(
    ("given", "languages"),
    [
        ("", ()),
        ("de", ("en", "de")),
        ("en", ("en",)),
        ("de-DE,pt_BR,zh-CN", ("en", "de", "pt", "zh")),
        ("nb,iw", ("en", "no", "he")),
        ("all,de", WHISPER_LANGUAGES),
    ],
)
def test_usual_spellings_are_understood(given: str, languages: tuple[str, ...]) -> None:
    assert speech_languages(given.split(",") if given else []) == languages


def test_what_is_no_language_is_refused() -> None:
    with pytest.raises(ValueError, match="'german' is not a language"):
        speech_languages(["de", "german"])
