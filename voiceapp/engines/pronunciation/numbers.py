"""English numbers in words."""

from __future__ import annotations

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ("", "thousand", "million", "billion", "trillion", "quadrillion")
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
MOST = 1000 ** len(_SCALES)
"""Numbers from here on are read digit by digit."""


def cardinal(number: int) -> str:
    """`42` as "forty-two"."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    if number >= MOST:
        return digits(str(number))
    groups: list[str] = []
    for scale in _SCALES:
        number, group = divmod(number, 1000)
        if group:
            groups.append(f"{_below_thousand(group)} {scale}".rstrip())
        if not number:
            break
    return " ".join(reversed(groups)) or _ONES[0]


def ordinal(number: int) -> str:
    """`42` as "forty-second"."""
    words = cardinal(number)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    last = words[cut:]
    if last in _ORDINALS:
        last = _ORDINALS[last]
    elif last.endswith("y"):
        last = f"{last[:-1]}ieth"
    else:
        last = f"{last}th"
    return words[:cut] + last


def year(number: int) -> str:
    """`1883` as "eighteen eighty-three", `1905` as "nineteen oh five", `2003` as "two thousand three"."""
    century, rest = divmod(number, 100)
    if number < 1100 or number > 9999 or (century % 10 == 0 and rest < 10):
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def decimal(text: str) -> str:
    """`3.14` as "three point one four"; thousands may be parted by commas."""
    whole, _, fraction = text.replace(",", "").partition(".")
    words = cardinal(int(whole or 0))
    return f"{words} point {digits(fraction)}" if fraction else words


def digits(text: str) -> str:
    """`007` as "zero zero seven"; what is no digit is left out."""
    return " ".join(_ONES[int(digit)] for digit in text if digit.isdecimal())


def plural(words: str) -> str:
    """ "ninety" as "nineties", "hundred" as "hundreds"."""
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"


def _below_thousand(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    words = f"{_ONES[hundreds]} hundred" if hundreds else ""
    if rest < 20:
        tail = _ONES[rest] if rest else ""
    else:
        tens, ones = divmod(rest, 10)
        tail = _TENS[tens] + (f"-{_ONES[ones]}" if ones else "")
    return f"{words} {tail}".strip()
