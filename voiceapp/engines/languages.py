"""Codes of languages."""

from __future__ import annotations

from collections.abc import Sequence


def is_one_of(language: str, languages: Sequence[str]) -> bool:
    """Whether a language, as its ISO 639-1 code with or without a region (`en`, `en-GB`), is among a recognizer's."""
    return language.split("-")[0].lower() in languages
