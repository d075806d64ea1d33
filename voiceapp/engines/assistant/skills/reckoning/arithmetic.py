"""Sums said aloud: a small grammar over words, exact fractions, and no evaluation of code."""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil, floor, isqrt

from voiceapp.engines.assistant.skills.phrases import Phrases, read
from voiceapp.engines.assistant.skills.reckoning.numbers import (
    is_exact,
    is_named_part,
    read_number,
    read_ordinal,
    spoken,
    whole_number,
)
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.words import plain

MAX_WORDS = 40
MAX_DEPTH = 20
MAX_BITS = 330
"""About a hundred digits: what comes out longer is not worth saying."""

_LEAD = re.compile(
    r"^(?:what (?:is|are) the (?:result|value|answer) (?:of|to)|what (?:is|in|are|does|would)|how much (?:is|are|does)"
    r"|calculate|compute|work out|evaluate|solve|add up|the (?:result|value) of)\b ?"
)
_TRAIL = re.compile(r" ?(?:equals?|make|makes|come to|come out to|be|is|=|bill)$")
_MONEY = re.compile(r" ?\b(dollar|euro|pound|buck|franc|cent|rupee|peso|crown)s?\b|\$ ?(?=\d)")
_FORMS = [(Phrases(*form["templates"]), form) for form in read("reckoning/arithmetic")["forms"]]
_PER_YEAR: dict[str, int] = read("reckoning/arithmetic")["per_year"]
_PERCENT = re.compile(r"(?<=\d) ?%(?! ?\d)")
_TOTAL = Phrases(*read("reckoning/arithmetic")["templates"]["total"])
_PART = re.compile(r"([\d,.]+) percent of ([\d,.]+) is (?:about )?[\d,.]*\d(?: ([a-z]+?)s?)?\.$")
_ROUNDED = re.compile(
    r"round (?:that|it|this)(?: (up|down|off))?(?: to (?:the nearest|a|an?)? ?(?:whole number|[a-z]+))?"
)
_RATE = re.compile(rf"(?: an?| per| each| every) ({'|'.join(_PER_YEAR)})\b")
MAX_NUMBER_WORDS = 6
_TIP = re.compile(
    r"^(?:an? )?(\S+(?: \S+)?) ?(?:percent|%) (?:tip|tax|interest|commission) (?:on|of|for) (?:an? |my |the )?"
)
"""A part of an amount: "a 20 percent tip on 45 dollars"."""
_TOKENS = re.compile(r"\d+(?:\.\d+)?(?:st|nd|rd|th)?|\.\d+|[a-z]+|\*\*|[-+*/^%()√$]")
_HOMOPHONES = {"to": 2, "too": 2, "for": 4, "won": 1, "ate": 8}
"""Words that a recognizer writes for a number; believed only where nothing but a number can stand."""
_NOT_SUMS = re.compile(r"\d+ ?[-/] ?\d+|\d+(?: ?- ?\d+)+")
"""24/7, 9/11, 555-1234: without words around them these are names."""
_NAMES = {"9/11", "24/7", "50/50", "20/20"}

_WORDS = read("reckoning/arithmetic")["words"]
_ADD: dict[str, str] = _WORDS["add"]
_MULTIPLY: dict[tuple[str, ...], str] = {tuple(words.split()): sign for words, sign in _WORDS["multiply"].items()}
_TO_THE = tuple(tuple(words.split()) for words in _WORDS["to_the"])
_VERBS: list[tuple[str, str, str]] = _WORDS["verbs"]
_SAID: dict[str, str] = _WORDS["said"]


class _NoSum(Exception):
    """These words are not a sum."""


class _Beyond(Exception):
    """A sum that has no result worth saying; the argument is the sentence to say."""


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is anything but a sum, from its first word to its last."""
    if (match := _PART.match(scene.last_reply)) and _TOTAL.fits(said):
        return _solved(f"{match[2]} plus {match[1]} percent".replace(",", ""), scene, money=match[3] or "")
    if (match := _ROUNDED.fullmatch(said)) and (previous := _previous(scene.last_reply)) is not None:
        return SkillReply(f"That is {spoken(Fraction({'up': ceil, 'down': floor}.get(match[1], round)(previous)))}.")
    kinds = {match[1] or "dollar" for match in _MONEY.finditer(said)}
    money = kinds.pop() if len(kinds) == 1 else ""
    asked = _PERCENT.sub(" percent", " ".join(_MONEY.sub(" ", said).split()) if money else said)
    for phrases, form in _FORMS:
        for whole in filter(None, (_with_ratio(slots, form["sum"], scene) for slots in phrases.matches(asked))):
            if found := _solved(form["sum"].format(**whole), scene, money=money, after=form["after"].format(**whole)):
                return found
    return _solved(asked, scene, money=money)


def _with_ratio(slots: dict[str, str], form: str, scene: Scene) -> dict[str, str] | None:
    """`slots`, and how many of the one length of time the other has, where `form` needs it; None for unknown lengths.

    An amount that was not said is the one said last with a length of time, as in "2500 a month".
    """
    if "{ratio}" not in form:
        return slots
    amount = slots if "period" in slots else _last_rate(scene)
    if amount is None or amount["period"] not in _PER_YEAR or slots["target"] not in _PER_YEAR:
        return None
    times, parts = _PER_YEAR[amount["period"]], _PER_YEAR[slots["target"]]
    ratio = f"{times // parts}" if times % parts == 0 else f"{times} divided by {parts}"
    return {**slots, **amount, "ratio": ratio}


def _last_rate(scene: Scene) -> dict[str, str] | None:
    for text in reversed(scene.earlier):
        said = _MONEY.sub("", plain(text))
        for match in _RATE.finditer(said):
            words = said[: match.start()].split()
            for count in range(MAX_NUMBER_WORDS, 0, -1):
                if whole_number(" ".join(words[-count:])) is not None:
                    return {"amount": " ".join(words[-count:]), "period": match[1]}
    return None


def _solved(said: str, scene: Scene, *, money: str = "", after: str = "") -> SkillReply | None:
    asked = _LEAD.sub("", said)
    has_lead = asked != said
    asked = _TRAIL.sub("", _TIP.sub(r"\1 percent of ", asked.replace("$", "")))
    if asked.replace(" ", "") in _NAMES or (not has_lead and _NOT_SUMS.fullmatch(asked)):
        return None
    words = _TOKENS.findall(asked)
    if "".join(words) != asked.replace(" ", "") or not 2 <= len(words) <= MAX_WORDS:
        return None
    try:
        sum_ = _Sum(words, previous=_previous(scene.last_reply), may_guess=has_lead)
        value, text = sum_.whole()
    except _NoSum:
        return None
    except _Beyond as beyond:
        return SkillReply(str(beyond))
    is_rounded = sum_.is_rounded or not is_exact(value)
    result = spoken(value)
    if money:
        is_rounded = (value * 100).denominator != 1
        result = result if value.denominator == 1 else f"{float(round(value, 2)):,.2f}"
        result = f"{result} {money}{'' if value == 1 else 's'}"
    return SkillReply(f"{text[:1].upper()}{text[1:]} is {'about ' if is_rounded else ''}{result}{after}.")


def _previous(last_reply: str) -> Fraction | None:
    """The result that was said last, for "times three" and "divide that by two"."""
    match = re.search(
        r" is (?:about )?(minus )?([\d,]+(?:\.\d+)?)(?: (?!of\b|a\b)[a-z]+s?)?(?: each| a [a-z]+)?\.$", last_reply
    )
    if match is None:
        return None
    value = Fraction(match[2].replace(",", ""))
    return -value if match[1] else value


class _Sum:
    """Recursive descent over the words of one sum. Each rule gives the value and how it is said back."""

    def __init__(self, words: list[str], *, previous: Fraction | None, may_guess: bool) -> None:
        self._words = words
        self._previous = previous
        self._may_guess = may_guess or any(word[0].isdigit() or read_number([word]) for word in words)
        self._at = 0
        self._depth = 0
        self._operations = 0
        self.is_rounded = False

    def whole(self) -> tuple[Fraction, str]:
        value, text = self._leading() or self._sum()
        while self._accept("and", "then") or self._accept("then"):
            if (sign := self._factor_sign() or self._term_sign()) is None:
                raise _NoSum
            value, text = self._apply(sign, (value, f"{text},"), self._operand())
        if self._at != len(self._words) or self._operations == 0:
            raise _NoSum
        return value, text

    def _leading(self) -> tuple[Fraction, str] | None:
        """Forms that begin with a verb, or go on from the last result."""
        for verb, between, sign in _VERBS:
            start = self._at
            if self._accept(verb):
                try:
                    first = self._operand()
                    if self._accept(between):
                        second = self._operand()
                        return self._apply(sign, *((second, first) if between == "from" else (first, second)))
                except _NoSum:
                    pass
                self._at = start
        if self._accept("what", "percent", "of") or self._accept("what", "percentage", "of"):
            whole = self._operand()
            if self._accept("is"):
                return self._share(self._operand(), whole)
            raise _NoSum
        if self._previous is not None and (leading := self._factor_sign() or self._term_sign()):
            return self._apply(leading, (self._previous, spoken(self._previous)), self._operand())
        return None

    def _sum(self) -> tuple[Fraction, str]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _NoSum
        left = self._product()
        while True:
            if self._accept("as", "a", "percentage", "of") or self._accept("as", "a", "percent", "of"):
                left = self._share(left, self._operand())
            elif (sign := self._term_sign()) is not None:
                left = self._plus_or_minus(sign, left, self._product())
            else:
                self._depth -= 1
                return left

    def _plus_or_minus(
        self, sign: str, left: tuple[Fraction, str], right: tuple[Fraction, str]
    ) -> tuple[Fraction, str]:
        if self._accept("percent") or self._accept("%"):  # "80 plus 15 percent": of the 80
            share = left[0] * right[0] / 100
            value, _ = self._apply(sign, left, (share, ""))
            return value, f"{left[1]} {_SAID[sign]} {right[1]} percent"
        return self._apply(sign, left, right)

    def _product(self) -> tuple[Fraction, str]:
        left = self._power()
        while sign := self._factor_sign():
            left = self._apply(sign, left, self._power())
        return left

    def _power(self) -> tuple[Fraction, str]:
        base = self._operand()
        while True:
            if self._accept("squared"):
                base = self._raise(base, 2, f"{base[1]} squared")
            elif self._accept("cubed"):
                base = self._raise(base, 3, f"{base[1]} cubed")
            elif any(self._accept(*words) for words in _TO_THE):
                base = self._to_the(base)
            elif self._next_are("percent", "of") or self._next_are("%", "of"):
                self._at += 2
                whole = self._operand()
                base = self._count(base[0] * whole[0] / 100), f"{base[1]} percent of {whole[1]}"
            elif self._next_are("percent", "off") or self._next_are("%", "off"):
                self._at += 2
                self._accept("of")
                whole = self._operand()
                base = self._count(whole[0] * (1 - base[0] / 100)), f"{base[1]} percent off {whole[1]}"
            elif self._next_are("of") and 0 < base[0] < 1:  # "half of 30", "two thirds of 9"
                self._at += 1
                whole = self._operand()
                base = self._count(base[0] * whole[0]), f"{base[1]} of {whole[1]}"
            else:
                return base

    def _to_the(self, base: tuple[Fraction, str]) -> tuple[Fraction, str]:
        """The exponent: "power of ten", "power ten", "fourth", "fourth power", "10th"."""
        if self._accept("power"):
            self._accept("of")
            power = self._operand()[0]
        elif (found := read_ordinal(self._words, self._at)) is not None:
            power, self._at = Fraction(found[0]), found[1]
            self._accept("power")
        else:
            power = self._operand()[0]
            self._accept("power")
        if power.denominator != 1:
            raise _Beyond("I can only raise numbers to whole powers.")
        return self._raise(base, int(power), f"{base[1]} to the power of {spoken(power)}")

    def _operand(self) -> tuple[Fraction, str]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _NoSum
        try:
            return self._operand_inside()
        finally:
            self._depth -= 1

    def _operand_inside(self) -> tuple[Fraction, str]:
        if self._accept("minus") or self._accept("negative") or self._accept("-"):
            value, text = self._operand()
            return -value, f"minus {text}"
        if self._accept("(") or self._accept("open", "parenthesis") or self._accept("open", "bracket"):
            value, text = self._sum()
            if not (self._accept(")") or self._accept("close", "parenthesis") or self._accept("close", "bracket")):
                raise _NoSum
            return value, f"({text})"
        self._accept("the")
        if self._accept("square", "root", "of") or self._accept("square", "root") or self._accept("√"):
            return self._root(*self._operand())
        if self._accept("square", "of"):
            base = self._operand()
            return self._raise(base, 2, f"{base[1]} squared")
        if self._accept("double") or self._accept("twice"):
            value, text = self._operand()
            return self._count(value * 2), f"twice {text}"
        if self._accept("sum", "of"):
            left = self._operand()
            if not self._accept("and"):
                raise _NoSum
            return self._apply("+", left, self._operand())
        return self._number()

    def _number(self) -> tuple[Fraction, str]:
        found = read_number(self._words, self._at)
        if found is not None:
            text = " ".join(self._words[self._at : found[1]])
            value, self._at = found
            return value, text if is_named_part(text) else spoken(value)
        word = self._words[self._at] if self._at < len(self._words) else ""
        if self._previous is not None and word in ("that", "it"):
            self._at += 1
            return self._previous, spoken(self._previous)
        if self._may_guess and word in _HOMOPHONES:
            self._at += 1
            return Fraction(_HOMOPHONES[word]), spoken(Fraction(_HOMOPHONES[word]))
        raise _NoSum

    def _term_sign(self) -> str | None:
        if self._accept("take", "away") or self._accept("subtract"):
            return "-"
        if self._accept("added", "to"):
            return "+"
        if self._at < len(self._words) and (sign := _ADD.get(self._words[self._at])):
            self._at += 1
            return sign
        return None

    def _factor_sign(self) -> str | None:
        for words, sign in _MULTIPLY.items():
            if self._accept(*words):
                return sign
        return None

    def _next_are(self, *words: str) -> bool:
        return tuple(self._words[self._at : self._at + len(words)]) == words

    def _accept(self, *words: str) -> bool:
        if not self._next_are(*words):
            return False
        self._at += len(words)
        return True

    def _apply(self, sign: str, left: tuple[Fraction, str], right: tuple[Fraction, str]) -> tuple[Fraction, str]:
        a, b = left[0], right[0]
        if sign in "/%" and b == 0:
            raise _Beyond("Nothing can be divided by zero.")
        if sign == "+":
            value = a + b
        elif sign == "-":
            value = a - b
        elif sign == "*":
            value = a * b
        elif sign == "/":
            value = a / b
        else:
            value = a % b
        return self._count(value), f"{left[1]} {_SAID[sign]} {right[1]}"

    def _share(self, part: tuple[Fraction, str], whole: tuple[Fraction, str]) -> tuple[Fraction, str]:
        if whole[0] == 0:
            raise _Beyond("Nothing is a percentage of zero.")
        return self._count(part[0] / whole[0] * 100), f"{part[1]} as a percentage of {whole[1]}"

    def _raise(self, base: tuple[Fraction, str], power: int, text: str) -> tuple[Fraction, str]:
        value = base[0]
        if value == 0 and power < 0:
            raise _Beyond("Nothing can be divided by zero.")
        bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        if abs(power) > 10_000 or (bits > 1 and bits * abs(power) > 2 * MAX_BITS):
            raise _Beyond("That number is too large to say.")
        return self._count(value**power), text

    def _root(self, value: Fraction, text: str) -> tuple[Fraction, str]:
        if value < 0:
            raise _Beyond("A negative number has no real square root.")
        root = Fraction(isqrt(value.numerator), isqrt(value.denominator))
        if root**2 != value:
            self.is_rounded = True
            root = round(Fraction(float(value) ** 0.5), 6)
        return self._count(root), f"the square root of {text}"

    def _count(self, value: Fraction) -> Fraction:
        self._operations += 1
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
            raise _Beyond("That number is too large to say.")
        return value
