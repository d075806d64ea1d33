"""Conversions between units of length, mass, volume, temperature, speed, area and time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log10

from voiceapp.engines.assistant.skills.numbers import is_named_part, read_number, spoken
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.words import plain


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


_unit("length", "0.001", "millimeter", aliases="mm")
_unit("length", "0.01", "centimeter", aliases="cm")
_unit("length", "1", "meter")
_unit("length", "1000", "kilometer", aliases="km, kms, k")
_unit("length", "0.0254", "inch", "inches")
_unit("length", "0.3048", "foot", "feet", aliases="ft")
_unit("length", "0.9144", "yard", aliases="yds")
_unit("length", "1609.344", "mile")
_unit("length", "1852", "nautical mile")
_unit("mass", "0.001", "milligram", aliases="mg")
_unit("mass", "1", "gram", aliases="gramme, grammes")
_unit("mass", "1000", "kilogram", aliases="kg, kilo, kilos, kgs")
_unit("mass", "1000000", "metric ton", aliases="ton, tons, tonne, tonnes")
_unit("mass", "28.349523125", "ounce", aliases="oz")
_unit("mass", "453.59237", "pound", aliases="lb, lbs")
_unit("mass", "6350.29318", "stone", "stone", aliases="stones")
_unit("volume", "0.001", "milliliter", aliases="ml")
_unit("volume", "0.01", "centiliter", aliases="cl")
_unit("volume", "1", "liter")
_unit("volume", "1000", "cubic meter")
_unit("volume", "0.00492892159375", "teaspoon", aliases="tsp")
_unit("volume", "0.01478676478125", "tablespoon", aliases="tbsp")
_unit("volume", "0.0295735295625", "fluid ounce")
_unit("volume", "0.2365882365", "cup")
_unit("volume", "0.473176473", "pint")
_unit("volume", "0.946352946", "quart")
_unit("volume", "3.785411784", "gallon")
_unit("temperature", "1", "degree Celsius", "degrees Celsius", "celsius, centigrade, degrees centigrade", "273.15")
_unit("temperature", "5/9", "degree Fahrenheit", "degrees Fahrenheit", "fahrenheit, farenheit", "229835/900")
_unit("temperature", "1", "kelvin", "kelvin", aliases="kelvins, degrees kelvin")
_unit("speed", "1", "meter per second", "meters per second")
_unit("speed", "5/18", "kilometer per hour", "kilometers per hour", aliases="kph, kmh, km h, kilometers an hour")
_unit("speed", "0.44704", "mile per hour", "miles per hour", aliases="mph, miles an hour")
_unit("speed", "1852/3600", "knot")
_unit("area", "1", "square meter")
_unit("area", "1000000", "square kilometer")
_unit("area", "0.09290304", "square foot", "square feet")
_unit("area", "2589988.110336", "square mile")
_unit("area", "4046.8564224", "acre")
_unit("area", "10000", "hectare")
_unit("time", "0.001", "millisecond")
_unit("time", "1", "second")
_unit("time", "60", "minute")
_unit("time", "3600", "hour")
_unit("time", "86400", "day")
_unit("time", "604800", "week")
_unit("time", "1209600", "fortnight")
_unit("time", "31536000", "year")
_unit("time", "315360000", "decade")
_unit("time", "3153600000", "century", "centuries")
_unit("data", "1", "byte")
_unit("data", "1/8", "bit")
_unit("data", "1000", "kilobyte")
_unit("data", "1000000", "megabyte")
_unit("data", "1000000000", "gigabyte", aliases="gigs, gig")
_unit("data", "1000000000000", "terabyte")

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
_QUANTITY = re.compile(rf"(?P<number>.+?) ?(?P<unit>{_NAME})(?: (?:and )?(?P<rest>.+))?")
_EXPLICIT = re.compile(r"how many |convert |what (?:is|are) |how much (?:is|are) ")


_AND_IN = re.compile(
    r"(?:(?:and|what about|how about|what is (?:that|it)|how much is (?:that|it)|that|or) )*"
    rf"(?:in|to|into) (?P<to>{_NAME})"
)
_LAST_AMOUNT = re.compile(r"^(?P<amount>.+?) (?:is|are) (?:about )?-?[\d,.]+ [A-Za-z ]+\.$")


def _completed(said: str, scene: Scene) -> str:
    """ "And in feet?" after a conversion asks for the amount that was converted."""
    follow_up, last = _AND_IN.fullmatch(said), _LAST_AMOUNT.match(scene.last_reply)
    if follow_up is None or last is None:
        return said
    return f"{plain(last['amount'])} in {follow_up['to']}"


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks for no conversion between two units that are known."""
    said = _completed(said, scene)
    is_british = re.search(r"(?:met|lit)res?\b", said) is not None
    said = " ".join(said.replace("°", " degrees ").split())
    said = re.sub(r"\bdegrees ([cf])\b", lambda m: "celsius" if m[1] == "c" else "fahrenheit", said)
    said = re.sub(r" (?:is that|is it|would that be|would it be)$", "", said)
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
        words = f"{text[:1].upper()}{text[1:]} {verb} {_about(result)} {target.one if result == 1 else target.many}."
        return SkillReply(_BRITISH.sub(r"\1re\2", words) if is_british else words)
    return None


def seconds_of(text: str) -> Fraction | None:
    """A length of time such as "an hour and a half", in seconds; None when it is none."""
    amount = _amount(text)
    return amount[0] * amount[1].factor if amount is not None and amount[1].kind == "time" else None


def _about(value: Fraction) -> str:
    """`value` in three digits, as people say it; whole numbers and short fractions as they are."""
    if (value * 10).denominator == 1:
        return spoken(value)
    places = 2 - floor(log10(abs(value)))
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
