"""Small things: a coin, dice, a random number, spelling a word, counting."""

from __future__ import annotations

import re

from voiceapp.engines.assistant.skills.phrases import load, read
from voiceapp.engines.assistant.skills.reckoning.numbers import whole_number
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply

MAX_COUNT = 30
MAX_DICE = 10
MAX_WORD_CHARS = 30

_TEMPLATES, _ = load("people/play")
_CHOICES: dict[str, list[str]] = read("people/play")["choices"]
_NOT_SPELLED = frozenset(("check", "checker", "checking", "it", "that", "this", "out", "bound", "correctly"))


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks for none of these."""
    for game, results in _CHOICES.items():
        if _TEMPLATES[game].fits(said):
            return SkillReply(scene.dice.choice(results))
    if (spell := _TEMPLATES["spell"].match(said)) is not None:
        return _spelled(spell["word"])
    if (count := _TEMPLATES["count"].match(said)) is not None:
        return _counted(count["to"])
    if (slots := _TEMPLATES["random"].match(said)) is not None:
        return _random(slots.get("low", "1"), slots.get("high", "100"), scene)
    if (slots := _TEMPLATES["between"].match(said)) is not None:
        return SkillReply(f"I would say: {scene.dice.choice((slots['one'], slots['other']))}.")
    if (slots := _TEMPLATES["sided"].match(said) or _TEMPLATES["dice"].match(said)) is not None:
        return _roll(slots.get("count", "1"), slots.get("sides", "6"), scene)
    return None


def _spelled(word: str) -> SkillReply | None:
    if re.fullmatch(rf"[a-z]{{2,{MAX_WORD_CHARS}}}", word) is None or word in _NOT_SPELLED:
        return None
    return SkillReply(f"{word.capitalize()}: {', '.join(word.upper())}.")


def _counted(text: str) -> SkillReply | None:
    last = whole_number(text)
    if last is None or last.denominator != 1 or last < 1:
        return None
    if last > MAX_COUNT:
        return SkillReply(f"That would take a while. I count to {MAX_COUNT} at most.")
    return SkillReply(", ".join(str(number) for number in range(1, int(last) + 1)) + ".")


def _random(low_text: str, high_text: str, scene: Scene) -> SkillReply | None:
    low, high = whole_number(low_text), whole_number(high_text)
    if low is None or high is None or low.denominator != 1 or high.denominator != 1:
        return None
    first, last = sorted((int(low), int(high)))
    return SkillReply(f"{scene.dice.randint(first, last)}.")


def _roll(count_text: str, sides_text: str, scene: Scene) -> SkillReply | None:
    count_text = "1" if count_text in ("a", "the", "some") else count_text.removeprefix("the ")
    count, sides = whole_number(count_text), whole_number(sides_text)
    if count is None or sides is None or count.denominator != 1 or sides.denominator != 1:
        return None
    if not 1 <= count <= MAX_DICE or not 2 <= sides <= 1000:
        return SkillReply(f"I roll up to {MAX_DICE} dice with 2 to 1,000 sides.")
    rolled = [scene.dice.randint(1, int(sides)) for _ in range(int(count))]
    if len(rolled) == 1:
        return SkillReply(f"{rolled[0]}.")
    return SkillReply(f"{', '.join(map(str, rolled[:-1]))} and {rolled[-1]}: {sum(rolled)} together.")
