"""Languages that the embedded recognizer can be set up for."""

from __future__ import annotations

from collections.abc import Sequence

from voiceapp.formats import language_code

ENGLISH = "en"
_CODES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml "
    "cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am "
    "yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su"
)
WHISPER_LANGUAGES = tuple(_CODES.split())
"""Codes of the languages that Whisper was trained on, those that it knows best first."""
KOKORO_LANGUAGES = ("es", "fr", "hi", "it", "pt")
"""Languages that Kokoro speaks here; its Japanese and Chinese need readers of their own."""


def speech_languages(given: Sequence[str]) -> tuple[str, ...]:
    """Return the languages of the setting SPEECH_LANGUAGES, English first; empty where none is named.

    Raises:
        ValueError: if one is not known; the message says which.
    """
    named = [language_code(tag) for tag in given]
    if "all" in named:
        return WHISPER_LANGUAGES
    if unknown := [code for code in named if code not in WHISPER_LANGUAGES]:
        raise ValueError(f"{unknown[0]!r} is not a language that Whisper knows. Write codes such as de,es,fr, or all.")
    return tuple(dict.fromkeys((ENGLISH, *named))) if named else ()
