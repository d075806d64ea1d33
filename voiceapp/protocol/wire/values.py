"""Reading one value of a client's settings: its type and its range, or a refusal that names the field."""

from __future__ import annotations

import re
from typing import Any

from voiceapp.errors import InvalidParameter
from voiceapp.formats import language_code

MAX_TERMS = 100
MAX_TERM_LENGTH = 64
"""Characters."""
MAX_TERM_WORDS = 4
MAX_TERMS_TEXT = 8192
"""Characters of a text with terms in it."""


def read_object(value: object, param: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidParameter(f"{param} must be an object.", param=param)
    return value


def read_text(value: object, param: str, *, limit: int) -> str:
    if not isinstance(value, str):
        raise InvalidParameter(f"{param} must be a string.", param=param)
    if len(value) > limit:
        raise InvalidParameter(f"{param} is longer than {limit} characters.", param=param)
    return value


DETECTED = "auto"
"""Words that callers write for a language that is to be detected."""


def read_language(value: object, param: str) -> str | None:
    """The ISO 639-1 code of a spoken language; None where it is to be detected."""
    language = language_code(read_text(DETECTED if value in (None, "") else value, param, limit=16))
    if language != DETECTED and not re.fullmatch("[a-z]{2,3}", language):
        raise InvalidParameter(f"{param} must be a code such as de, or {DETECTED}.", param=param)
    return None if language == DETECTED else language


MAX_METADATA = 16
"""Entries."""


def read_metadata(value: object, param: str) -> dict[str, str] | None:
    """Return the metadata that a client keeps with an object: names and short texts."""
    if value is None or value == {}:
        return None
    given = read_object(value, param)
    if len(given) > MAX_METADATA:
        raise InvalidParameter(f"{param} may have at most {MAX_METADATA} entries.", param=param)
    return {name: read_text(each, f"{param}.{name[:64]}", limit=512) for name, each in given.items()}


def read_terms(value: object, param: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_TERMS:
        raise InvalidParameter(f"{param} must be a list of at most {MAX_TERMS} strings.", param=param)
    return tuple(read_text(term, param, limit=MAX_TERM_LENGTH) for term in value)


def terms_in(text: str) -> tuple[str, ...]:
    """The terms of a text that lists them between commas, semicolons or line ends; its sentences are none."""
    terms = (term.strip(" .") for term in re.split(r"[,;\n]", text))
    listed = (term for term in terms if len(term) <= MAX_TERM_LENGTH and 0 < len(term.split()) <= MAX_TERM_WORDS)
    return tuple(dict.fromkeys(listed))[:MAX_TERMS]


def read_boolean(value: object, param: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidParameter(f"{param} must be true or false.", param=param)
    return value


def read_number(value: object, param: str, low: float, high: float, *, below: bool = False) -> float:
    """A number from `low` to `high`; with `below`, `high` itself is out of range."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not low <= value <= high
        or (below and value == high)
    ):
        raise InvalidParameter(
            f"{param} must be a number from {low:g} {'below' if below else 'to'} {high:g}.", param=param
        )
    return float(value)


def read_integer(value: object, param: str, low: int, high: int) -> int:
    """A whole number from `low` to `high`; `800.0` is one too."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidParameter(f"{param} must be an integer from {low} to {high}.", param=param)
    return value
