"""Small things: a coin, dice, a random number, spelling a word, counting."""

from __future__ import annotations

import re

from voiceapp.engines.embedded.skills.numbers import whole_number
from voiceapp.engines.embedded.skills.scene import Scene, SkillAnswer

MAX_COUNT = 30
MAX_DICE = 10

_COIN = re.compile(
    r"(?:flip|toss|throw)(?: me)? (?:a|the|one) coin|heads or tails|coin (?:flip|toss)|(?:flip|toss)(?: it)? again"
)
_DICE = re.compile(
    r"(?:roll|throw)(?: me)? (?:(?P<count>.+?) )?(?:(?P<sides>.+?) sided )?(?:d ?(?P<short>\d{1,3})|die|dice)"
)
_RANDOM = re.compile(
    r"(?:(?:pick|give me|choose|say|generate|tell me|think of|what is) )?(?:a|any|another) (?:random )?number(?: (?:between|from) (?P<low>.+?) (?:and|to) (?P<high>.+))?|random number"
)
_SPELL = re.compile(
    r"(?:how (?:do|would|can) (?:you|i|we) |how to )?spell (?:(?:the word|out) )?(?P<word>[a-z]{2,30})(?: out)?"
    r"|how (?:do|would) (?:you|i) write (?:the word )?(?P<write>[a-z]{2,30})"
    r"|(?:what is )?(?:the )?spelling of (?:the word )?(?P<of>[a-z]{2,30})|how is (?:the word )?(?P<is>[a-z]{2,30}) (?:spelled|spelt)"
)
_NOT_SPELLED = {
    "check",
    "checker",
    "it",
    "that",
    "this",
    "checking",
    "correctly",
    "bound",
    "out",
    "a",
    "the",
    "my",
    "your",
}
_COUNT = re.compile(r"count (?:up )?(?:from (?:1|one) )?to (?P<to>.+)")


def answer(said: str, scene: Scene) -> SkillAnswer | None:
    """`said` is a request in plain form; None when it asks for none of these."""
    if _COIN.fullmatch(said):
        return SkillAnswer(scene.dice.choice(("Heads.", "Tails.")))
    if match := _SPELL.fullmatch(said):
        word = next(group for group in match.groups() if group)
        if word in _NOT_SPELLED:
            return None
        return SkillAnswer(f"{word.capitalize()}: {', '.join(word.upper())}.")
    if match := _COUNT.fullmatch(said):
        last = whole_number(match["to"])
        if last is None or last.denominator != 1 or last < 1:
            return None
        if last > MAX_COUNT:
            return SkillAnswer(f"That would take a while. I count to {MAX_COUNT} at most.")
        return SkillAnswer(", ".join(str(number) for number in range(1, int(last) + 1)) + ".")
    if match := _RANDOM.fullmatch(said):
        return _random(match["low"], match["high"], scene)
    if match := _DICE.fullmatch(said):
        return _roll(match["count"], match["sides"] or match["short"], scene)
    return None


def _random(low_text: str | None, high_text: str | None, scene: Scene) -> SkillAnswer | None:
    low, high = whole_number(low_text or "1"), whole_number(high_text or "100")
    if low is None or high is None or low.denominator != 1 or high.denominator != 1:
        return None
    first, last = sorted((int(low), int(high)))
    return SkillAnswer(f"{scene.dice.randint(first, last)}.")


def _roll(count_text: str | None, sides_text: str | None, scene: Scene) -> SkillAnswer | None:
    count_text = re.sub(r"^(?:a|the|some|an)$", "1", count_text or "1")
    count, sides = whole_number(count_text), whole_number(sides_text or "6")
    if count is None or sides is None or count.denominator != 1 or sides.denominator != 1:
        return None
    if not 1 <= count <= MAX_DICE or not 2 <= sides <= 1000:
        return SkillAnswer(f"I roll up to {MAX_DICE} dice with 2 to 1,000 sides.")
    rolled = [scene.dice.randint(1, int(sides)) for _ in range(int(count))]
    if len(rolled) == 1:
        return SkillAnswer(f"{rolled[0]}.")
    return SkillAnswer(f"{', '.join(map(str, rolled[:-1]))} and {rolled[-1]}: {sum(rolled)} together.")
