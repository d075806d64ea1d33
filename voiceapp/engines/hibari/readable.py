"""English text as hibari's rules can read it: what they read wrong written out, what would cost them too much cut."""

from __future__ import annotations

import re
from collections.abc import Callable

Found = re.Match[str]

_ADDRESS_MARKS = {".": "dot", "/": "slash", "-": "dash", "_": "underscore", ":": "colon", "#": "hash"}


def _dotted(address: str) -> str:
    return re.sub(r"[./_:#-]", lambda mark: f" {_ADDRESS_MARKS[mark[0]]} ", address.rstrip("/"))


def _digits(found: Found) -> str:
    return " ".join(found[0])


def _telephone(found: Found) -> str:
    groups = re.findall(r"\d+", found[0])
    return ("plus " if found[0].startswith("+") else "") + ", ".join(" ".join(group) for group in groups)


def _loose(found: Found) -> str:
    """The time for a word grows with the cube of its parts: an unbroken run is parted at its marks."""
    return re.sub(r"\W+|_+", lambda marks: f"{marks[0][0].replace('-', ' ')} ", found[0])


_RULES: tuple[tuple[re.Pattern[str], str | Callable[[Found], str]], ...] = (
    (
        re.compile(r"\b([\w.+-]{1,64})@([\w-]{1,63}(?:\.[\w-]{1,63}){1,8})"),
        lambda mail: f"{_dotted(mail[1])} at {_dotted(mail[2])}",
    ),
    (re.compile(r"(?:https?://|(?=www\.))([\w./#:-]*[\w/])", re.IGNORECASE), lambda web: _dotted(web[1])),
    (
        re.compile(r"(?<![\w.])((?:[\w-]{1,63}\.){1,8}(?:com|org|net|io|dev|edu|gov|eu|uk|de)(?:/[\w./-]*\w)?)\b"),
        lambda web: _dotted(web[1]),
    ),
    (re.compile(r"\+\d{1,3}[\s-]?(?:\(?\d{1,4}\)?[\s-]?){2,5}\d|\(\d{3}\)\s?\d{3}-\d{4}"), _telephone),
    (re.compile(r"(?<![\w.,:/-])0\d+|\d{16,}"), _digits),
    (re.compile(r"(?<![\d.])\d+(?:\.\d+){2,}"), lambda version: version[0].replace(".", " point ")),
    (re.compile(r"\b[Ee]\.\s?g\.,?"), "for example,"),
    (re.compile(r"\b[Ii]\.\s?e\.,?"), "that is,"),
    (re.compile(r"\bp\.(?=\s?\d)"), "page "),
    (re.compile(r"[^\w\s]{6,}"), lambda marks: marks[0][:3]),
    (re.compile(r"\S{25,}"), _loose),
    (re.compile(r"(\w{25})(?=\w{10})"), r"\1 "),
    (re.compile(r"(?<=\d)(?=[.!?]$)"), " "),  # its rules for telephone numbers and ranges take no stop behind them
)


def readable(text: str) -> str:
    """A piece of English for hibari's rules."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
