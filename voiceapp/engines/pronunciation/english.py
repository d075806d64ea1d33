"""English text as a person would read it aloud.

Rules are applied one after the other, each to what the ones before have left: addresses before numbers, numbers with a
unit before bare ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from voiceapp.engines.pronunciation.numbers import cardinal, decimal, digits, ordinal, plural, year
from voiceapp.engines.pronunciation.words import (
    ABBREVIATIONS,
    CURRENCIES,
    FRACTIONS,
    MONTHS,
    ROMAN,
    SHORT_MONTHS,
    SYMBOLS,
    UNITS,
)

Found = re.Match[str]

_NUMBER = r"\d{1,3}(?:,\d{3}){1,8}(?:\.\d+)?|\d+(?:\.\d+)?"
_MONTH = "|".join((*MONTHS, *(rf"{short}\.?" for short in SHORT_MONTHS)))
_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_SIGNS = "".join(CURRENCIES)
_SCALE = "thousand|million|billion|trillion"
_AFTER = r"(?![\w/])"


def spoken_english(text: str) -> str:
    """`text` with everything written out that is spoken otherwise than it is spelled."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    kept = "".join(char for char in text if unicodedata.category(char) not in ("So", "Cf", "Cs", "Sk"))
    return re.sub(r"[ \t]+", " ", kept).strip(" \t")


# ── Marks and addresses ──────────────────────────────────────────────────────────────────────────────────────────────


def _list_item(found: Found) -> str:
    """A line of a list, or a heading, is a sentence of its own."""
    line = found[1].rstrip()
    return line if re.search(r"[.!?:;,]$", line) else f"{line}."


def _table_row(found: Found) -> str:
    cells = [cell.strip() for cell in found[0].strip().strip("|").split("|")]
    words = [cell for cell in cells if cell.strip("-: ")]
    return f"{', '.join(words)}." if words else ""


def _web_address(found: Found) -> str:
    return _dotted(found[1].rstrip("/")) + found[2]


def _mail_address(found: Found) -> str:
    return f"{_dotted(found[1])} at {_dotted(found[2])}"


def _dotted(address: str) -> str:
    for mark, word in ((".", "dot"), ("/", "slash"), ("-", "dash"), ("_", "underscore"), (":", "colon"), ("#", "hash")):
        address = address.replace(mark, f" {word} ")
    return re.sub(r"\d+", lambda number: f" {_number(number[0])} ", address).strip()


# ── Dates and times ──────────────────────────────────────────────────────────────────────────────────────────────────


def _date(month: str, day: str, of_year: str | None, written: str) -> str:
    names = [*MONTHS, *SHORT_MONTHS]
    number = int(month) if month.isdigit() else names.index(month.rstrip(".").capitalize()) % 12 + 1
    if not (1 <= number <= 12 and 1 <= int(day) <= 31):
        return written
    words = f"{MONTHS[number - 1]} {ordinal(int(day))}"
    return f"{words}, {year(int(of_year))}" if of_year else words


def _time(found: Found) -> str:
    hour, minute, second, half = int(found[1]), int(found[2]), found[3], found[4]
    if hour > 24 or minute > 59:
        return found[0]
    if second:
        words = f"{_many(hour, 'hour')}, {_many(minute, 'minute')} and {_many(int(second), 'second')}"
    elif minute:
        words = f"{cardinal(hour)} {'oh ' if minute < 10 else ''}{cardinal(minute)}"
    else:
        words = (
            cardinal(hour) if half else f"{cardinal(hour)} o'clock" if 0 < hour <= 12 else f"{cardinal(hour)} hundred"
        )
    return words + (f" {half[0].upper()} M" if half else "")


def _many(count: int, unit: str) -> str:
    return f"{cardinal(count)} {unit if count == 1 else f'{unit}s'}"


def _hour(found: Found) -> str:
    return f"{cardinal(int(found[1]))} {found[2].upper()} M"


# ── Amounts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _money(found: Found) -> str:
    one, many, part = CURRENCIES[found[1]]
    amount, scale = found[2].replace(",", ""), found[3]
    if scale:
        return f"{decimal(amount)} {scale} {many}"
    whole, _, cents = amount.partition(".")
    words = f"{cardinal(int(whole))} {one if int(whole) == 1 else many}"
    if not cents or not int(cents):
        return words
    small = f"{cardinal(int(cents.ljust(2, '0')[:2]))} {part}"
    return small if int(whole) == 0 else f"{words} and {small}"


def _with_unit(found: Found) -> str:
    one, many = UNITS[found[2]]
    return f"{_number(found[1])} {one if found[1] == '1' else many}"


def _range(found: Found) -> str:
    return f"{found[1]} to {found[2]}"


def _fraction(found: Found) -> str:
    above, below = int(found[1]), int(found[2])
    if not 1 <= above < below <= 20:
        return found[0]
    part = {2: "half", 4: "quarter"}.get(below) or ordinal(below)
    if above > 1:
        part = "halves" if below == 2 else f"{part}s"
    return f"{cardinal(above)} {part}"


def _telephone(found: Found) -> str:
    groups = re.findall(r"\d+", found[0])
    return ("plus " if found[0].startswith("+") else "") + ", ".join(digits(group) for group in groups)


def _decade(found: Found) -> str:
    return plural(year(int(found[1])))


def _version(found: Found) -> str:
    return " point ".join(cardinal(int(part)) for part in found[0].split("."))


def _roman(found: Found) -> str:
    return f"{found[1]} {cardinal(ROMAN[found[2]])}"


def _number(text: str) -> str:
    if re.fullmatch(r"0\d+", text):
        return digits(text)
    if re.fullmatch(r"1[1-9]\d\d|20[1-9]\d", text):
        return year(int(text))
    return decimal(text)


def _bare(found: Found) -> str:
    return _number(found[0])


def _negative(found: Found) -> str:
    return f"minus {_number(found[1])}"


def _house(found: Found) -> str:
    """A house number with a letter, such as 221B."""
    number = int(found[1])
    hundreds, rest = divmod(number, 100)
    words = f"{cardinal(hundreds)} {cardinal(rest)}" if 0 < hundreds < 10 and rest > 9 else cardinal(number)
    return f"{words} {found[2].upper()}"


Replacement = str | Callable[[Found], str]
# Nothing that a text may repeat is matched without a bound from each of its places: a request's whole text comes here.
_WRITTEN: tuple[tuple[str, Replacement, int], ...] = (
    (r"\d{16,}", lambda found: digits(found[0]), 0),
    # Markdown
    (r"^[ \t]*(?:```|~~~).*$", "", re.MULTILINE),
    (r"!?\[([^\[\]]*)\]\((?:[^()]|\([^()]*\))*\)", r"\1", 0),
    (r"^[ \t]*\|.*\|[ \t]*$", _table_row, re.MULTILINE),
    (r"^[ \t]*(?:#{1,6}|[-*+•]|>)[ \t]+(.*)$", _list_item, re.MULTILINE),
    (r"^[ \t]*[-*_]{3,}[ \t]*$", "", re.MULTILINE),
    (r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|[`~|]|(?<!\w)_+|_+(?!\w)", "", 0),
    # Addresses
    (r"\b([\w.+-]{1,64})@([\w-]+(?:\.[\w-]+)+)", _mail_address, 0),
    (r"(?:https?://|(?=www\.))([\w./#:-]*[\w/])()", _web_address, re.IGNORECASE),
    (r"(?<![\w.])((?:[\w-]{1,63}\.){1,8}(?:com|org|net|io|dev|edu|gov|eu|uk|de)(?:/[\w./-]*\w)?)()\b", _web_address, 0),
    # Dates and times
    (
        r"\b(\d{4})-(\d{2})-(\d{2})\b",
        lambda found: _date(found[2], found[3], found[1], found[0]),
        0,
    ),
    (
        r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b",
        lambda found: _date(found[1], found[2], found[3], found[0]),
        0,
    ),
    (
        rf"\b({_MONTH})\s+(\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(\d{{4}}))?\b(?!:)",
        lambda found: _date(found[1], found[2], found[3], found[0]),
        0,
    ),
    (
        rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})(?:,?\s+(\d{{4}}))?\b",
        lambda found: _date(found[2], found[1], found[3], found[0]),
        0,
    ),
    (r"\b(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s*([ap])(?:\.m\.|m\b))?", _time, re.IGNORECASE),
    (r"\b(\d{1,2})\s*([ap])(?:\.m\.|m\b)", _hour, re.IGNORECASE),
    # Amounts
    (r"\b(1[1-9]\d0|20\d0)s\b", _decade, 0),
    (rf"([{_SIGNS}])\s?({_NUMBER})(?:\s(({_SCALE})\b))?", _money, 0),
    (r"(?:\+\d{1,3}[\s-]?)(?:\(?\d{1,4}\)?[\s-]?){2,5}\d|\(\d{3}\)\s?\d{3}-\d{4}|\b\d{3}-\d{4}\b", _telephone, 0),
    (r"\b(?:\d{3}-){2}\d{4}\b", _telephone, 0),
    (rf"(?<![\w.])({_NUMBER})\s?[-–]\s?(?={_NUMBER})(?!\d+[-–])", r"\1 to ", 0),
    (rf"(?<![\w.])[-−]({_NUMBER})\s?({_UNIT}){_AFTER}", lambda f: f"minus {_with_unit(f)}", 0),
    (rf"(?<![\w.])({_NUMBER})\s?({_UNIT}){_AFTER}", _with_unit, 0),
    (r"\b(\d+)(?:st|nd|rd|th)\b", lambda found: ordinal(int(found[1])), 0),
    (r"\b\d+(?:\.\d+){2,}\b", _version, 0),
    (r"(?<![\w/])(\d+)\s?[/⁄]\s?(\d+)(?![\w/])", _fraction, 0),
    *((re.escape(sign), f" {words} ", 0) for sign, words in FRACTIONS.items()),
    (rf"\b(Chapter|Part|Volume|Act|Section|War|Book|Phase)\s({'|'.join(ROMAN)})\b", _roman, 0),
    # Abbreviations
    *((pattern, words, 0) for pattern, words in ABBREVIATIONS),
    # What is left of numbers and signs
    (r"\b(\d{1,4})([A-Da-d])\b", _house, 0),
    (rf"(?<![\w.)])[-−]({_NUMBER})", _negative, 0),
    *((pattern, words, 0) for pattern, words in SYMBOLS),
    (_NUMBER, _bare, 0),
)
_RULES = tuple((re.compile(pattern, flags), replacement) for pattern, replacement, flags in _WRITTEN)
