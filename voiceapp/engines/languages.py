"""Codes of languages."""

from __future__ import annotations

from collections.abc import Sequence

from voiceapp.formats import language_code


def is_one_of(language: str, languages: Sequence[str]) -> bool:
    """Return whether a language (`en`, `en-GB`, `en_GB`) is among a recognizer's."""
    return language_code(language) in map(language_code, languages)
