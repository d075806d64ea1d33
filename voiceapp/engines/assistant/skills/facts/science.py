"""Chemical elements, planets, and some well-known facts."""

from __future__ import annotations

from voiceapp.engines.assistant.skills.phrases import data_rows, load, read
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply, fixed
from voiceapp.protocol.work import Source

_TEMPLATES, _REPLIES = load("facts/science")
_SOURCE = Source(**read("facts/science")["source"])
_PLANETS = read("facts/science")["planets"]
_PLANET = {
    "distance": "{} is about {} from the sun.",
    "diameter": "{} is about {} across.",
    "year": "A year on {} lasts {} of ours.",
    "day": "A day on {} lasts about {}, from noon to noon.",
}
_ELEMENT = {
    "symbol": "The symbol of {name} is {symbol}.",
    "number": "The atomic number of {name} is {number}.",
    "weight": "The atomic weight of {name} is {weight}.",
}


def _elements() -> dict[str, dict[str, str]]:
    """Elements by name, symbol and number, in plain form."""
    found: dict[str, dict[str, str]] = {}
    for number, symbol, names, weight in data_rows("elements.tsv"):
        name, *others = names.split("|")
        element = {"number": number, "symbol": symbol, "name": name, "weight": weight}
        found |= dict.fromkeys((name, *others, symbol.lower(), number), element)
    return found


_ELEMENTS = _elements()


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks for nothing that is known here."""
    for kind, told in _ELEMENT.items():
        if (slots := _TEMPLATES[kind].match(said)) and (element := _ELEMENTS.get(slots["element"])):
            return SkillReply(told.format(**element), source=_SOURCE)
    if (slots := _TEMPLATES["of_symbol"].match(said)) and (element := _ELEMENTS.get(slots["symbol"])):
        text = "{symbol} is {name}, the element with the atomic number {number}.".format(**element)
        return SkillReply(text, source=_SOURCE)
    if (slots := _TEMPLATES["moons"].match(said)) and (planet := _PLANETS.get(slots["planet"])):
        count, name = planet["moons"], slots["planet"].capitalize()
        known = f"{count} known moons" if count > 2 else f"{count or 'no'} moon{'' if count == 1 else 's'}"
        return SkillReply(f"{name} has {known}.", source=_SOURCE)
    for kind, told in _PLANET.items():
        if (slots := _TEMPLATES[kind].match(said)) and (planet := _PLANETS.get(slots["planet"])):
            return SkillReply(told.format(slots["planet"].capitalize(), planet[kind]), source=_SOURCE)
    return fixed(_REPLIES, said)
