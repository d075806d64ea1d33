"""The time, the date, and how far away a day is."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from voiceapp.engines.assistant.skills.numbers import read_number, read_ordinal
from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply

_MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
]  # fmt: skip
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_FEASTS = {
    "christmas": (12, 25),
    "christmas day": (12, 25),
    "christmas eve": (12, 24),
    "new year": (1, 1),
    "new years": (1, 1),
    "new years day": (1, 1),
    "the new year": (1, 1),
    "new years eve": (12, 31),
    "halloween": (10, 31),
    "valentines day": (2, 14),
    "the end of the year": (12, 31),
    "the year": (12, 31),
    "this year": (12, 31),
}
_PLACES = {
    "new york city": "America/New_York", "boston": "America/New_York", "washington": "America/New_York",
    "miami": "America/New_York", "san francisco": "America/Los_Angeles", "california": "America/Los_Angeles",
    "seattle": "America/Los_Angeles", "texas": "America/Chicago", "beijing": "Asia/Shanghai",
    "china": "Asia/Shanghai", "india": "Asia/Kolkata", "delhi": "Asia/Kolkata", "new delhi": "Asia/Kolkata",
    "mumbai": "Asia/Kolkata", "bangalore": "Asia/Kolkata", "japan": "Asia/Tokyo", "korea": "Asia/Seoul",
    "south korea": "Asia/Seoul", "germany": "Europe/Berlin", "france": "Europe/Paris", "italy": "Europe/Rome",
    "spain": "Europe/Madrid", "england": "Europe/London", "the uk": "Europe/London", "uk": "Europe/London",
    "britain": "Europe/London", "scotland": "Europe/London", "switzerland": "Europe/Zurich",
    "austria": "Europe/Vienna", "sweden": "Europe/Stockholm", "norway": "Europe/Oslo", "denmark": "Europe/Copenhagen",
    "finland": "Europe/Helsinki", "poland": "Europe/Warsaw", "ukraine": "Europe/Kiev", "greece": "Europe/Athens",
    "turkey": "Europe/Istanbul", "milan": "Europe/Rome", "munich": "Europe/Berlin", "utc": "UTC", "greenwich": "UTC",
    "kyoto": "Asia/Tokyo", "osaka": "Asia/Tokyo", "the netherlands": "Europe/Amsterdam",
}  # fmt: skip

_TEMPLATES, _ = load("clock")
_TIME = _TEMPLATES["time"]
_TIME_IN = _TEMPLATES["time_in"]
_AND_IN = _TEMPLATES["and_in"]
_APART = _TEMPLATES["apart"]
_TODAY = _TEMPLATES["today"]
_DAY_AT = _TEMPLATES["day_at"]
_WEEKDAY_OF = _TEMPLATES["weekday_of"]
_YEAR = _TEMPLATES["year"]
_MONTH = _TEMPLATES["month"]
_UNTIL = _TEMPLATES["until"]
_WHEN = _TEMPLATES["when"]
_DISTANCE = _TEMPLATES["distance"]
_AGO = _TEMPLATES["ago"]
_TOLD_TIME = re.compile(r"^(?:In .+ it is|It is) [\d:]+ [ap]\.m\.")
_NEAR_DAYS = {
    "today": 0,
    "tomorrow": 1,
    "yesterday": -1,
    "tomorrows date": 1,
    "yesterdays date": -1,
    "the day after tomorrow": 2,
    "the day before yesterday": -2,
    "after tomorrow": 2,
    "before yesterday": -2,
}


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks neither for a time nor for a date."""
    now = scene.now
    today = now.date()
    if _TIME.fits(said):
        return SkillReply(f"It is {_clock_time(now)}")
    if (slots := _TIME_IN.match(said)) is not None:
        return _time_in(slots["place"], now)
    if (slots := _AND_IN.match(said)) is not None and _TOLD_TIME.match(scene.last_reply):
        return _time_in(slots["place"], now)
    if (slots := _APART.match(said)) is not None:
        return _apart(slots["place"], now)
    if _TODAY.fits(said):
        return SkillReply(f"Today is {_long(today)}.")
    if _YEAR.fits(said):
        return SkillReply(f"It is the year {now.year}.")
    if _MONTH.fits(said):
        return SkillReply(f"It is {now:%B}.")
    if (slots := _DAY_AT.match(said)) is not None and (found := _day_at(slots["day"], today)) is not None:
        return found
    if (slots := _WEEKDAY_OF.match(said)) is not None and (day := read_date(slots["day"], today)) is not None:
        return SkillReply(f"{_month_day(day, today)} {_tense(day, today)} a {day:%A}.")
    if (slots := _UNTIL.match(said)) is not None:
        return _until(slots["day"], today)
    if (slots := _WHEN.match(said)) is not None and slots["day"] in _FEASTS:
        return _until(slots["day"], today)
    return None


def _time_in(place: str, now: datetime) -> SkillReply | None:
    zone = _zone(place)
    if zone is None:
        return None
    there = now.astimezone(zone)
    return SkillReply(f"In {place.title()} it is {_clock_time(there)}{_other_day(now, there)}")


def _apart(place: str, now: datetime) -> SkillReply | None:
    zone = _zone(place)
    if zone is None:
        return None
    hours = ((now.astimezone(zone).utcoffset() or timedelta()) - (now.utcoffset() or timedelta())) / timedelta(hours=1)
    if not hours:
        return SkillReply(f"{place.title()} has the same time.")
    count = f"{abs(hours):g} {'hour' if abs(hours) == 1 else 'hours'}"
    return SkillReply(f"{place.title()} is {count} {'ahead' if hours > 0 else 'behind'}.")


def read_date(text: str, today: date) -> date | None:
    """The next day called `text`: a feast, "december 25th", "the 25th of december 2030", "friday"."""
    text = re.sub(r"^(?:next|this|on) ", "", text)
    if text in _FEASTS:
        return _next(*_FEASTS[text], today=today)
    if text in _WEEKDAYS:
        return today + timedelta(days=(_WEEKDAYS.index(text) - today.weekday() - 1) % 7 + 1)
    words = [word for word in text.split() if word not in ("the", "of")]
    month = next((index for index, word in enumerate(words) if word in _MONTHS), None)
    if month is None or month > 2:
        return None
    number = _MONTHS.index(words[month]) + 1
    day, rest = _day_number(words[month + 1 :] if month == 0 else words[:month])
    if day is None:
        return None
    year_words = rest if month == 0 else [*rest, *words[month + 1 :]]
    try:
        if not year_words:
            return _next(number, day, today=today)
        if len(year_words) == 1 and re.fullmatch(r"\d{4}", year_words[0]):
            return date(int(year_words[0]), number, day)
    except ValueError:  # 31 June
        return None
    return None


def _day_number(words: list[str]) -> tuple[int | None, list[str]]:
    if found := read_ordinal(words):
        return found[0], words[found[1] :]
    number = read_number(words)
    if number is None or number[0].denominator != 1 or not 1 <= number[0] <= 31:
        return None, words
    return int(number[0]), words[number[1] :]


def _next(month: int, day: int, *, today: date) -> date:
    if (month, day) == (2, 29):
        year = today.year
        while not _is_leap(year) or date(year, 2, 29) < today:
            year += 1
        return date(year, 2, 29)
    this_year = date(today.year, month, day)
    return this_year if this_year >= today else date(today.year + 1, month, day)


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _day_at(text: str, today: date) -> SkillReply | None:
    """The date of tomorrow, yesterday, "in 3 weeks" or "10 days ago"."""
    if text in _NEAR_DAYS:
        day = today + timedelta(days=_NEAR_DAYS[text])
        subject = re.sub(r"^(after|before)", r"the day \1", text).removesuffix("s date")
        return SkillReply(f"{subject[:1].upper()}{subject[1:]} {_tense(day, today)} {_long(day)}.")
    ago = _AGO.match(text)
    slots = ago or _DISTANCE.match(text)
    if slots is None:
        return None
    words = ["1"] if slots["number"] in ("a", "one") else slots["number"].split()
    number = read_number(words)
    if number is None or number[1] != len(words) or number[0].denominator != 1 or number[0] > 36_500:
        return None
    days = int(number[0]) * (7 if re.search(r"\bweeks?\b", text) else 1)
    day = today + timedelta(days=-days if ago else days)
    return SkillReply(f"That {'was' if ago else 'will be'} {_long(day)}.")


def _until(text: str, today: date) -> SkillReply | None:
    day = today + timedelta(days=1) if text == "tomorrow" else read_date(text, today)
    if day is None:
        return None
    days = (day - today).days
    if days < 0:
        return SkillReply(f"{_month_day(day, today)} was {-days} {'day' if days == -1 else 'days'} ago.")
    if days == 0:
        return SkillReply(f"That is today, {_long(day)}.")
    away = "1 day" if days == 1 else f"{days} days"
    name = f"{_feast_name(text)} is on" if text in _FEASTS else "That is"
    return SkillReply(f"{name} {_long(day)}, {away} from now.")


def _feast_name(text: str) -> str:
    name = text.removeprefix("the ").replace("new years", "new year's").replace("valentines", "valentine's")
    return name if name.startswith("end ") else " ".join(word.capitalize() for word in name.split())


def _clock_time(moment: datetime) -> str:
    hour = moment.hour % 12 or 12
    half = "a.m." if moment.hour < 12 else "p.m."
    return f"{hour} {half}" if moment.minute == 0 else f"{hour}:{moment:%M} {half}"


def _other_day(here: datetime, there: datetime) -> str:
    if there.date() == here.date():
        return ""
    return " tomorrow." if there.date() > here.date() else " yesterday."


def _long(day: date) -> str:
    return f"{day:%A}, {day:%B} {day.day}, {day.year}"


def _month_day(day: date, today: date) -> str:
    return f"{day:%B} {day.day}" + ("" if day.year == today.year else f", {day.year},")


def _tense(day: date, today: date) -> str:
    return "was" if day < today else "is"


@cache
def _zones() -> dict[str, str]:
    """Names of cities to zones."""
    cities = {
        name.rsplit("/", 1)[1].replace("_", " ").lower(): name
        for name in sorted(available_timezones())
        if name.split("/")[0] in ("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
    }
    return cities | _PLACES


def _zone(place: str) -> ZoneInfo | None:
    name = _zones().get(place.strip())
    return None if name is None else ZoneInfo(name)
