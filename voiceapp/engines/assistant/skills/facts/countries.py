"""Countries: capitals, inhabitants, currencies, languages, neighbours, areas and continents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from voiceapp.engines.assistant.skills.phrases import data_rows, load, read
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.words import listed, plain
from voiceapp.protocol.work import Source

_TEMPLATES, _ = load("facts/countries")
_SOURCE = Source(**read("facts/countries")["source"])
_THE = ("United", "Netherlands", "Philippines", "Maldives", "Bahamas", "Gambia", "Czech Republic", "Seychelles")
_THERE = frozenset(("there", "it", "its", "this country", "that country", "they", "their", "the country", "in it"))
_FACTS: dict[str, str] = read("facts/countries")["facts"]
_MOST: dict[str, str] = read("facts/countries")["most"]
_COURTESY = re.compile(r"^(?:please|then|now|again|today|exactly|for me|by the way)\b.*")
MAX_GUESS_WORDS = 3
"""Length of a guess that follows a question: "the capital of Turkey, Istanbul?"."""
SQUARE_MILES = 0.3861


@dataclass(frozen=True, slots=True)
class Country:
    name: str
    capital: str
    people: int
    area_km2: int
    currencies: tuple[str, ...]
    languages: tuple[str, ...]
    neighbours: tuple[str, ...]
    continent: str

    def __str__(self) -> str:
        """The name within a sentence."""
        return f"the {self.name}" if self.name.startswith(_THE) or self.name.endswith("Islands") else self.name


def _read() -> tuple[dict[str, Country], dict[str, Country]]:
    by_name: dict[str, Country] = {}
    by_capital: dict[str, Country] = {}
    for names, capital, people, area, currencies, languages, neighbours, continent in data_rows("countries.tsv"):
        name, *others = names.split("|")
        many = [tuple(filter(None, cell.split("|"))) for cell in (currencies, languages, neighbours)]
        country = Country(name, capital, int(people), int(area), many[0], many[1], many[2], continent)
        by_name |= dict.fromkeys((_key(name), *others), country)
        by_capital.setdefault(_key(capital), country)
    return by_name, by_capital


def _key(name: str) -> str:
    return plain(name).removeprefix("the ")


_BY_NAME, _BY_CAPITAL = _read()


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks for nothing that is known of a country."""
    for name, told in _TOLD.items():
        known = (_country(slots["country"], scene) for slots in _TEMPLATES[name].matches(said))
        if (found := next(filter(None, known), None)) is not None:
            country, guess = found
            is_guess = bool(guess) and name == "capital"
            if not guess or is_guess:
                start = ("Yes. " if _key(guess) == _key(country.capital) else "No. ") if is_guess else ""
                return SkillReply(start + _upper(told(country)), source=_SOURCE)
    if (slots := _TEMPLATES["capital_is"].match(said)) and (found := _country(slots["country"], scene)):
        start = "Yes. " if _key(slots["city"]) == _key(found[0].capital) else "No. "
        return SkillReply(start + _upper(_TOLD["capital"](found[0])), source=_SOURCE)
    if (slots := _TEMPLATES["of_capital"].match(said)) and (of := _BY_CAPITAL.get(_key(slots["city"]))):
        return SkillReply(f"{of.capital} is the capital of {of}.", source=_SOURCE)
    if (slots := _TEMPLATES["fact"].match(said)) and (fact := _FACTS.get(slots["fact"])):
        last = _last(scene.earlier[-2:], scene)
        return SkillReply(_upper(_TOLD[fact](last)), source=_SOURCE) if last else None
    return _most(said) or _compared(said, scene)


def _last(texts: Sequence[str], scene: Scene) -> Country | None:
    """The country that the last reply begins with, or else the last that `texts` name."""
    found = mentioned([scene.last_reply])[:1] or mentioned(texts)[-1:]
    return found[0] if found else None


def _most(said: str) -> SkillReply | None:
    for slots in _TEMPLATES["most"].matches(said):
        where, key = slots.get("where", "world").removeprefix("the "), _MOST.get(slots["most"])
        everywhere = where in ("world", "earth", "planet")
        among = [country for country in _BY_NAME.values() if everywhere or country.continent.lower() == where]
        if key and among:
            sign = -1 if key.startswith("-") else 1
            first = max(among, key=lambda country: sign * int(getattr(country, key.lstrip("-"))))
            is_of_people = "people" in key
            what = f"{'has' if is_of_people else 'is'} the {slots['most']}{'' if is_of_people else ' country'}"
            place = "the world" if everywhere else first.continent
            return SkillReply(_upper(f"{first} {what} in {place}."), source=_SOURCE)
    return None


def _compared(said: str, scene: Scene) -> SkillReply | None:
    if (slots := _TEMPLATES["larger"].match(said)) is not None:
        both = [found[0] for name in (slots["one"], slots["other"]) if (found := _country(name, scene))]
    else:
        is_asked = _TEMPLATES["larger_of_both"].fits(said)
        both = list(dict.fromkeys(mentioned(scene.earlier)))[-2:] if is_asked else []
    if len(both) < 2:
        return None
    by_people = re.search(" people| inhabitants", said) is not None
    more, less = sorted(both, key=lambda country: -(country.people if by_people else country.area_km2))
    figures = (more.people, less.people) if by_people else (more.area_km2, less.area_km2)
    text = (
        "{} had more people around 2018: {} against {}."
        if by_people
        else "{} is larger: {} square kilometers against {}."
    )
    return SkillReply(_upper(text.format(more, *map(_rounded, figures))), source=_SOURCE)


def mentioned(texts: Iterable[str]) -> list[Country]:
    """The countries that are named in `texts`, by themselves or by their capitals, in the order of mention."""
    found = []
    for words in (plain(text).split() for text in texts):
        for start in range(len(words)):
            parts = (" ".join(words[start:end]) for end in range(min(len(words), start + 5), start, -1))
            known = (_BY_NAME.get(part) or _BY_CAPITAL.get(part) for part in parts)
            found += [country for country in known if country is not None][:1]
    return found


def _country(text: str, scene: Scene) -> tuple[Country, str] | None:
    """The country that `text` begins with, and the words after it, at most a few; "there" is the last one named."""
    if text in _THERE:
        last = _last(scene.earlier, scene)
        return (last, "") if last else None
    words = text.removeprefix("the ").split()
    for end in range(len(words), max(0, len(words) - MAX_GUESS_WORDS - 1), -1):
        name = " ".join(words[:end])
        country = _BY_NAME.get(name) or (_BY_NAME.get(name.removesuffix("s")) if end == len(words) else None)
        if country is not None:
            return country, _COURTESY.sub("", " ".join(words[end:]))
    return None


def _neighbours(country: Country) -> str:
    if not country.neighbours:
        return f"{country} has no borders on land."
    return f"{country} borders {listed([str(_BY_NAME[_key(name)]) for name in country.neighbours])}."


def _languages(country: Country) -> str:
    if len(country.languages) == 1:
        return f"the main language of {country} is {country.languages[0]}."
    return f"the main languages of {country} are {listed(country.languages)}."


def _area(country: Country) -> str:
    miles = _rounded(country.area_km2 * SQUARE_MILES)
    return f"{country} covers about {_rounded(country.area_km2)} square kilometers, or {miles} square miles."


_TOLD: dict[str, Callable[[Country], str]] = {
    "capital": lambda country: f"the capital of {country} is {country.capital}.".replace("..", "."),
    "population": lambda country: f"about {_rounded(country.people)} people lived in {country} around 2018.",
    "currency": lambda country: (
        f"people in {country} pay with {listed([f'the {name}' for name in country.currencies])}."
    ),
    "languages": _languages,
    "neighbours": _neighbours,
    "continent": lambda country: f"{country} is in {country.continent}.",
    "area": _area,
    "about": lambda country: (
        f"{country} is in {country.continent}, with about {_rounded(country.people)} people around 2018. "
        f"Its capital is {country.capital}."
    ).replace("..", "."),
}


def _rounded(count: float) -> str:
    """`count` in three digits."""
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if count >= size:
            return f"{float(f'{count / size:.3g}'):g} {name}"
    return f"{int(float(f'{count:.3g}')):,}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
