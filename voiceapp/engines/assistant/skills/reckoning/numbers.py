"""Spoken numbers in, numbers ready to be spoken out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from voiceapp.engines.assistant.skills.phrases import read

_NUMBERS = read("reckoning/numbers")
_ONES, _TENS, _SCALES, _ORDINALS = (_NUMBERS[kind] for kind in ("ones", "tens", "scales", "ordinals"))
_PARTS = {word: Fraction(part) for word, part in _NUMBERS["parts"].items()}
_MANY_PARTS = {word for word in _PARTS if word.endswith("s")}
_DIGITS = re.compile(r"\d+(?:\.\d+)?|\.\d+")
MAX_DIGITS = 30


def read_number(words: Sequence[str], at: int = 0) -> tuple[Fraction, int] | None:
    """The number that begins at `words[at]`, and the place after it; None when none begins there.

    Understands digits, "twenty one", "a hundred and five", "two point five", "3 million", "two and a half", "half",
    "three quarters", "two dozen". A "to" or "for" is never a number here.
    """
    if at >= len(words):
        return None
    if list(words[at : at + 3]) == ["half", "a", "dozen"]:
        return Fraction(6), at + 3
    if words[at] in ("half", "quarter") or (
        words[at] in ("a", "one") and at + 1 < len(words) and words[at + 1] in _PARTS.keys() - _MANY_PARTS
    ):
        place = at if words[at] in _PARTS else at + 1
        return _PARTS[words[place]], place + 1
    found = _whole(words, at)
    if found is None:
        return None
    value, at = found
    if words[at : at + 1] == ["point"]:
        digits, at = _decimals(words, at + 1)
        if not digits:
            return None
        value += Fraction(int(digits), 10 ** len(digits))
    elif value.denominator == 1 and at < len(words) and words[at] in _MANY_PARTS:
        return value * _PARTS[words[at]], at + 1
    elif list(words[at : at + 2]) == ["and", "a"] and words[at + 2 : at + 3] and words[at + 2] in ("half", "quarter"):
        return value + _PARTS[words[at + 2]], at + 3
    elif list(words[at : at + 2]) == ["and", "half"]:
        return value + Fraction(1, 2), at + 2
    if at < len(words) and words[at] in _SCALES and value < 1000:  # "2.5 million"
        value *= _SCALES[words[at]]
        at += 1
    return value, at


def _whole(words: Sequence[str], at: int) -> tuple[Fraction, int] | None:
    if words[at] == "a" and at + 1 < len(words) and words[at + 1] in ("hundred", *_SCALES):
        return _compound(words, at + 1, Fraction(1))
    if _DIGITS.fullmatch(words[at]):
        if len(words[at]) > MAX_DIGITS:
            return None
        value = Fraction(words[at])
        if at + 1 < len(words) and words[at + 1] == "hundred" and value < 100:
            return _compound(words, at + 1, value)
        return value, at + 1
    if words[at] in _ONES or words[at] in _TENS:
        return _compound(words, at, Fraction(0))
    return None


def _compound(words: Sequence[str], at: int, group: Fraction) -> tuple[Fraction, int]:
    """Number words from `at` on, with `group` already said before them."""
    total = Fraction(0)
    is_open = group == 0  # whether a unit may still follow: "twenty" + "one", but not "one" + "two"
    room = 100
    while at < len(words):
        word = words[at]
        if word == "and" and at + 1 < len(words) and at > 0 and words[at - 1] in ("hundred", "thousand", "million"):
            following = words[at + 1]
            if following not in _ONES and following not in _TENS:
                break
        elif word in _TENS and room >= 100 and is_open:
            group += _TENS[word]
            room = 10
        elif word in _ONES and is_open and (_ONES[word] < room) and (_ONES[word] > 0 or group == 0):
            group += _ONES[word]
            room, is_open = 0, False
        elif word == "hundred" and 0 < group < 100:
            group *= 100
            room, is_open = 100, True
        elif word in _SCALES and group > 0:
            total += group * _SCALES[word]
            group, room, is_open = Fraction(0), 100, True
        else:
            break
        at += 1
    return total + group, at


def _decimals(words: Sequence[str], at: int) -> tuple[str, int]:
    """The digits after "point"."""
    digits = ""
    while at < len(words) and len(digits) < MAX_DIGITS:
        if words[at].isdigit():
            digits += words[at]
        elif words[at] in _ONES and _ONES[words[at]] < 10:
            digits += str(_ONES[words[at]])
        elif words[at] == "oh":
            digits += "0"
        else:
            break
        at += 1
    return digits, at


def read_ordinal(words: Sequence[str], at: int = 0) -> tuple[int, int] | None:
    """ "third", "21st" or "twenty first", and the place after it."""
    if at >= len(words):
        return None
    if match := re.fullmatch(r"(\d{1,3})(?:st|nd|rd|th)", words[at]):
        return int(match[1]), at + 1
    if words[at] in _ORDINALS:
        return _ORDINALS[words[at]], at + 1
    if words[at] in _TENS and at + 1 < len(words) and _ORDINALS.get(words[at + 1], 99) < 10:
        return _TENS[words[at]] + _ORDINALS[words[at + 1]], at + 2
    return None


def whole_number(text: str) -> Fraction | None:
    """`text` as one number, or None when it is anything else."""
    words = text.split()
    if words and words[0] in ("minus", "negative"):
        rest = whole_number(" ".join(words[1:]))
        return None if rest is None else -rest
    if words and words[0].startswith("-"):
        words[0] = words[0][1:]
        rest = whole_number(" ".join(words))
        return None if rest is None else -rest
    found = read_number(words)
    return found[0] if found is not None and found[1] == len(words) else None


def is_named_part(text: str) -> bool:
    """Return whether a number was said as a part of one, "half" or "three quarters", and is best said back so."""
    words = text.split()
    return bool(words) and words[-1] in _PARTS and "and" not in words


def spoken(value: Fraction) -> str:
    """Digits as a synthesizer reads them well: at most six significant places after a long fraction."""
    sign = "minus " if value < 0 else ""
    value = abs(value)
    if value.denominator == 1:
        return sign + f"{value.numerator:,}"
    places = 4 if value >= 1 else min(12, 4 + _leading_zeros(value))
    text = f"{float(round(value, places)):,.{places}f}".rstrip("0").rstrip(".")
    return sign + text


def is_exact(value: Fraction) -> bool:
    """Return whether `spoken(value)` is exact."""
    places = 4 if abs(value) >= 1 else min(12, 4 + _leading_zeros(abs(value)))
    return bool((value * 10**places).denominator == 1)


def about(value: Fraction) -> str:
    """`spoken`, with "about" in front when something was rounded off."""
    return spoken(value) if is_exact(value) else f"about {spoken(value)}"


def _leading_zeros(value: Fraction) -> int:
    zeros = 0
    while value and value < Fraction(1, 10) and zeros < 10:
        value *= 10
        zeros += 1
    return zeros
