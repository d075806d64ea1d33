"""Conversions between units of length, mass, volume, temperature, speed, area and time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log10

from voiceapp.engines.assistant.skills.phrases import read
from voiceapp.engines.assistant.skills.reckoning.numbers import is_named_part, read_number, spoken
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply


@dataclass(frozen=True, slots=True)
class Unit:
    kind: str
    one: str
    """Name of one of it."""
    many: str
    factor: Fraction
    """Factor to the base unit of its kind: metre, gram, litre, kelvin, metre per second, square metre, second, byte."""
    offset: Fraction = Fraction(0)
    """Added after the factor; only temperatures have one."""


_UNITS: dict[str, Unit] = {}
_BRITISH = re.compile(r"(met|lit)er(s?)\b")


def _unit(kind: str, factor: str, one: str, many: str = "", aliases: str = "", offset: str = "0") -> None:
    """Enter one unit under its names. British spellings are entered for words in -meter and -liter."""
    unit = Unit(kind, one, many or f"{one}s", Fraction(factor), Fraction(offset))
    names = {unit.one, unit.many, *filter(None, (alias.strip() for alias in aliases.split(",")))}
    names |= {_BRITISH.sub(r"\1re\2", name) for name in names}
    _UNITS.update(dict.fromkeys(names, unit))


for _row in read("reckoning/units")["units"]:
    _unit(**_row)
_UNITS = {name.lower(): unit for name, unit in _UNITS.items()}
_NAME = "(?:" + "|".join(re.escape(name) for name in sorted(_UNITS, key=len, reverse=True)) + ")"
_FLUID_OUNCE = _UNITS["fluid ounce"]

_HOW_MANY = re.compile(
    rf"how many (?P<to>{_NAME}) (?:(?:are |is )?(?:there |they )?in|make(?: up)?|are|is|equal|go in|fit in|to|in) "
    r"(?P<amount>.+)"
)
_CONVERT = re.compile(
    r"(?:(?:what (?:is|are)|how much (?:is|are)|"
    r"how (?:far|long|tall|high|deep|wide|heavy|hot|cold|fast|big|warm) (?:is|are)|convert|turn|change|translate) )?"
    rf"(?P<amount>.+?) (?:in|to|into|as) (?:degrees? )?(?P<to>{_NAME})"
)
_TOLD_FIRST = re.compile(
    r"^(?:i am|i weigh|it is|he is|she is) (.+?)(?: tall| long| high)? (?:what|how much) is (?:that|it)"
)
_FEET_AND_INCHES = re.compile(
    r"(?:(?:i am|she is|he is|what is|how (?:tall|high|long|much) is|convert) )?(?P<amount>.+?)(?: tall)? "
    r"(?:(?:what|how much) is that )?(?:in|to|into) (?:feet|foot) and inch(?:es)?(?: is (?:that|it))?"
)
_QUANTITY = re.compile(rf"(?P<number>.+?) ?(?P<unit>{_NAME})(?: (?:and )?(?P<rest>.+))?")
_EXPLICIT = re.compile(r"how many |convert |what (?:is|are) |how much (?:is|are) ")


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks for no conversion between two units that are known."""
    is_british = re.search(r"(?:met|lit)res?\b", said) is not None
    said = " ".join(said.replace("°", " degrees ").split())
    said = re.sub(r"\bdegrees ([cf])\b", lambda m: "celsius" if m[1] == "c" else "fahrenheit", said)
    said = re.sub(r" (?:is that|is it|would that be|would it be)$", "", said)
    said = _TOLD_FIRST.sub(r"\1", said)
    if (match := _FEET_AND_INCHES.fullmatch(said)) is not None:
        return _feet_and_inches(match["amount"])
    for form in (_HOW_MANY, _CONVERT):
        match = form.fullmatch(said)
        if match is None:
            continue
        target = _UNITS[match["to"]]
        amount = _amount(match["amount"])
        if amount is None:
            continue
        value, source, text = amount
        if source.one == "ounce" and target.kind == "volume":
            source, text = _FLUID_OUNCE, text.replace("ounce", "fluid ounce")
        if target.one == "ounce" and source.kind == "volume":
            target = _FLUID_OUNCE
        if source is target:
            return None
        if source.kind != target.kind:
            if _EXPLICIT.match(said) is None:
                return None
            return SkillReply(
                f"I cannot turn {source.many} into {target.many}: one is {source.kind}, the other {target.kind}."
            )
        result = (value * source.factor + source.offset - target.offset) / target.factor
        verb = "is" if text.startswith(("1 ", "half ")) else "are"
        name = target.one if result == 1 else target.many
        words = f"{text[:1].upper()}{text[1:]} {verb} {_about(result, target.kind)} {name}."
        return SkillReply(_BRITISH.sub(r"\1re\2", words) if is_british else words)
    return None


def _feet_and_inches(text: str) -> SkillReply | None:
    amount = _amount(text)
    if amount is None or amount[1].kind != "length":
        return None
    feet, inches = divmod(round(amount[0] * amount[1].factor / _UNITS["inch"].factor), 12)
    said = f"{amount[2][:1].upper()}{amount[2][1:]}"
    return SkillReply(f"{said} {'is' if amount[0] == 1 else 'are'} about {feet} feet {inches} inches.")


def seconds_of(text: str) -> Fraction | None:
    """A length of time such as "an hour and a half", in seconds; None when it is none."""
    amount = _amount(text)
    return amount[0] * amount[1].factor if amount is not None and amount[1].kind == "time" else None


def _about(value: Fraction, kind: str) -> str:
    """`value` in three digits, as people say it, and temperatures with two places; short fractions as they are."""
    if (value * 10).denominator == 1:
        return spoken(value)
    places = 2 if kind == "temperature" else 2 - floor(log10(abs(value)))
    rounded = round(value, max(0, places))
    return spoken(value) if rounded == value else f"about {spoken(rounded)}"


def _amount(text: str) -> tuple[Fraction, Unit, str] | None:
    """A quantity such as "5 feet 10 inches" or "an hour and a half": its value, its unit, and how it is said."""
    text = re.sub(r"^(?:an?|one single) ", "1 ", re.sub(r"^(?:half (?:an?|of an?)|a half) ", "half ", text))
    match = re.fullmatch(rf"1 ({_NAME}) and a (half|quarter)", text)
    if match is not None:
        text = f"1 and a {match[2]} {match[1]}"
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, unit = match["number"], _UNITS[match["unit"]]
    if unit.kind == "temperature":
        number = re.sub(r" degrees?$", "", number)
    value = _number(number, is_signed=unit.kind == "temperature")
    if value is None:
        return None
    is_named = is_named_part(number)
    said = f"{number if is_named else spoken(value)} {unit.one if abs(value) == 1 or number == 'half' else unit.many}"
    if number == "half":
        said = f"half {'an' if unit.one[0] in 'aeiou' or unit.one == 'hour' else 'a'} {unit.one}"
    if match["rest"] is None:
        return value, unit, said
    rest = _amount(f"{match['rest']} inches" if unit.one == "foot" and _is_bare(match["rest"]) else match["rest"])
    if rest is None or rest[1].kind != unit.kind or rest[1].factor >= unit.factor or unit.kind == "temperature":
        return None
    return value + rest[0] * rest[1].factor / unit.factor, unit, f"{said} {rest[2]}"


def _is_bare(text: str) -> bool:
    """Return whether a number lacks its unit, as in "five foot nine"."""
    value = _number(text, is_signed=False)
    return value is not None and 0 < value < 12


def _number(text: str, *, is_signed: bool) -> Fraction | None:
    words = text.replace("-", " minus ").split()
    sign = 1
    if is_signed and words[:1] in (["minus"], ["negative"]):
        words, sign = words[1:], -1
    found = read_number(words)
    return sign * found[0] if found is not None and found[1] == len(words) else None
