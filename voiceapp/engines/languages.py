"""Codes of languages."""

from __future__ import annotations

from collections.abc import Sequence

DETECTED = "auto"
"""What callers write for a language that is to be detected."""


def is_one_of(language: str, languages: Sequence[str]) -> bool:
    """Return whether a language (`en`, `en-GB`) is among a recognizer's."""
    return language.split("-")[0].lower() in languages
