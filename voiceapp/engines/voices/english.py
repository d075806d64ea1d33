"""English text as its voices can read it: what they read wrong written out, what would cost them too much cut."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

Found = re.Match[str]

_ADDRESS_MARKS = {".": "dot", "/": "slash", "-": "dash", "_": "underscore", ":": "colon", "#": "hash"}
_METERS = {"": "meters", "c": "centimeters", "k": "kilometers", "m": "millimeters"}
_OHMS = {"": "ohms", "k": "kilohms", "M": "megohms"}


def _dotted(address: str) -> str:
    words = re.sub(r"[./_:#-]", lambda mark: f" {_ADDRESS_MARKS[mark[0]]} ", address.rstrip("/"))
    return re.sub(r"(?i)^www\b", "W W W", words)


def _digits(found: Found) -> str:
    return " ".join(found[0])


def _telephone(found: Found) -> str:
    groups = re.findall(r"\d+", found[0])
    return ("plus " if found[0].startswith("+") else "") + ", ".join(" ".join(group) for group in groups)


def _price(found: Found) -> str:
    """An amount with the sign of its currency before it, as English has it."""
    units = re.sub(r"\D", "", found[1])
    return f"{found[3]}{units}.{found[2]}" if found[2] else f"{found[3]}{units}"


def _duration(found: Found) -> str:
    parts = zip(map(int, found.groups()), ("hour", "minute", "second"), strict=True)
    said = [f"{number} {unit}{'s' * (number != 1)}" for number, unit in parts if number]
    return " and ".join(part for part in (", ".join(said[:-1]), *said[-1:]) if part) or found[0]


def _prices(found: Found) -> str:
    """A range of amounts, the first without its sign where it is a plain number."""
    return f"{'' if found[2].isdigit() else found[1]}{found[2]} to {found[1]}"


def _range(found: Found) -> str:
    return f"{found[1]} to {found[2]}" if int(found[1]) < int(found[2]) else found[0]


def _greek(found: Found) -> str:
    return f" {unicodedata.name(found[0]).split()[-1].lower()} "


def _loose(found: Found) -> str:
    """The time for a word grows with the cube of its parts: an unbroken run is parted at its marks."""
    return re.sub(r"\W+|_+", lambda marks: f"{marks[0][0].replace('-', ' ')} ", found[0])


_RULES: tuple[tuple[re.Pattern[str], str | Callable[[Found], str]], ...] = (
    (
        re.compile(r"\b([\w.+-]{1,64})@([\w-]{1,63}(?:\.[\w-]{1,63}){1,8})"),
        lambda mail: f"{_dotted(mail[1])} at {_dotted(mail[2])}",
    ),
    (re.compile(r"(?:https?://|(?=\bwww\.))([\w./#:-]*[\w/])", re.IGNORECASE), lambda web: _dotted(web[1])),
    (
        re.compile(r"(?<![\w.])((?:[\w-]{1,63}\.){1,8}(?:com|org|net|io|dev|edu|gov|eu|uk|de)(?:/[\w./-]*\w)?)\b"),
        lambda web: _dotted(web[1]),
    ),
    (re.compile(r"(?<=\d)(?:(?<!\d{4}) (?=000\b)|[\u00a0\u2009\u202f](?=\d{3}\b))"), ""),
    (re.compile(r"(?<![\w.,$£€])(\d{1,3}(?:[., ]\d{3}){1,4}|\d{1,9})(?:[.,](\d\d?))?\s?([$£€])(?!\w)"), _price),
    (re.compile(r"(?<![\w.,$£€])(\d[\d,]*(?:\.\d+)?\s(?:thousand|[mbtr]{1,2}illion))\s?([$£€])(?!\w)"), r"\2\1"),
    (re.compile(r"\bUS(?=\$\s?\d)"), ""),
    (re.compile(r"(?<![\w.:])(\d):([0-5]\d):([0-5]\d)(?!\d|[:.]\d|\s?[AaPp]\.?[Mm]\b)"), _duration),
    (re.compile(r"(?<![\w.:])(\d\d:[0-5]\d):00(?!\d|[:.]\d)"), r"\1"),
    (re.compile(r"([$£€])(\d[\d,]*(?:\.\d+)?(?:[km]|bn)?)\s?[-–—]\s?\1?(?=\d)(?![\d.,$£€ ]{0,20}=)"), _prices),
    (re.compile(r"[ʻʼ]"), "'"),
    (re.compile(r"(?<=\d)\s?bn\b"), " billion"),
    (re.compile(r"(?<![\w.])(?=\.\d)"), "0"),
    (re.compile(r"(?<![\w.])(\d)['’′](\d\d?)\b[\"”″]?"), r"\1 foot \2"),
    (
        re.compile(
            r"\+\d{1,3}[\s-]?(?:\(?\d{1,4}\)?[\s-]?){2,5}\d|\(\d{3}\)\s?\d{3}-\d{4}"
            r"|(?<![\w.-])(?:\d{3}-)?\d{3}-\d{4}(?![\w-])"
        ),
        _telephone,
    ),
    (re.compile(r"(?<![\w.-])(\d{1,4})[-–](\d{1,4})(?=[.!?](?:\s|$))"), _range),
    (
        re.compile(r"(?<![\w.])(\d\d?)\.(\d\d?)\.((?:19|20)\d\d)(?![\w-]|\.\d)"),
        lambda date: f"{date[3]}-{date[2]:0>2}-{date[1]:0>2}",
    ),
    (
        re.compile(
            r"(?<![\w.,:/-])0\d+\b(?![:/.]\d| (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))|\d{16,}",
        ),
        _digits,
    ),
    (re.compile(r"(?<![\d.])\d+(?:\.\d+){2,}"), lambda version: version[0].replace(".", " point ")),
    (
        re.compile(r"(?<=\d)\s?([ckm]?)m([²³])"),
        lambda area: f" {'square' if area[2] == '²' else 'cubic'} {_METERS[area[1]]}",
    ),
    (re.compile(r"(?<=\d)\s?([kM]?)Ω"), lambda resistance: f" {_OHMS[resistance[1]]}"),
    (re.compile(r"(?<=\d)(\s?)μ(?=[A-Za-z])"), r"\1µ"),
    (re.compile(r"(?<![\u0370-\u03ff])(?<![\u0370-\u03ff]\s)[Α-Ωα-ω](?!\s?[\u0370-\u03ff])"), _greek),
    (re.compile(r"\b[Ee]\.\s?g\.,?"), "for example,"),
    (re.compile(r"\b[Ii]\.\s?e\.,?"), "that is,"),
    (re.compile(r"\bp\.\s?(?=\d)"), "page "),
    (re.compile(r"[^\w\s]{6,}"), lambda marks: marks[0][:3]),
    (re.compile(r"\S{25,}"), _loose),
    (re.compile(r"([^\W\u3040-\U0010ffff]{25})(?=[^\W\u3040-\U0010ffff]{10})"), r"\1 "),
)


def readable(text: str) -> str:
    """English text for the English voices, before it is cut into pieces."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
