"""The time, the date, and how far away a day is."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from voiceapp.engines.embedded.skills.numbers import read_number, read_ordinal
from voiceapp.engines.embedded.skills.scene import Scene, SkillAnswer

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

_TIME = re.compile(
    r"(?:what (?:is )?(?:the )?(?:current |local |exact )?time(?: is it| it is| do you have| have you got)?"
    r"|(?:do you have|have you got|give me|say|check) the (?:current )?time|(?:the )?(?:current )?time(?: check)?"
    r"|how late is it)(?: (?:now|here|at the moment|today|currently))*"
)
_TIME_IN = re.compile(
    r"(?:what (?:is )?(?:the )?(?:current |local )?time(?: is it| it is)?|(?:the )?(?:current )?time|what about|how about)"
    r"(?: now| right now)? in (?P<place>[a-z ]{2,30}?)(?: now| right now)?"
)
_DAY = r"(?P<day>today|tomorrow|yesterday|the day after tomorrow|the day before yesterday|(?:in )?.{1,30} (?:from (?:now|today)|ago)|in .{1,24} (?:days?|weeks?))"
_DATE = re.compile(
    r"(?:what (?:is )?(?:the )?(?:current |todays )?date(?: is it| is today| it is)?(?: today)?|what (?:is )?todays date(?: today)?"
    r"|(?:the )?(?:current )?date(?: today)?|todays date|what (?:day|date) is (?:it|today|this)(?: today| now)?|what day it is(?: today)?"
    r"|what is today|which day is (?:it|today)(?: today)?|what day of the (?:week|month) is (?:it|today)(?: today)?"
    r"|what (?:is )?the day(?: of the week)?(?: today| is it| is today)?)"
)
_DATE_OF = re.compile(
    rf"(?:what (?:is |was |will be )?(?:the )?(?:day|date)(?: of the week)?(?: is| was| will| does)?(?: it)?(?: be| fall on)? ?{_DAY}(?: be)?"
    r"|what (?:is|was) (?P<tomorrow>tomorrow|yesterday)s (?:date|day)|what (?:is|was) (?P<bare>tomorrow|yesterday))"
)
_WEEKDAY_OF = re.compile(
    r"(?:what|which) (?:day|weekday|day of the week) (?:is|was|will|does) (?:it )?(?:on )?(?P<date>.+?)(?: be| on| fall on| this year)?"
)
_YEAR = re.compile(
    r"(?:what|which) year (?:is (?:it|this)|are we in|do we have)(?: now)?|what is the (?:current )?year"
)
_MONTH = re.compile(r"(?:what|which) month (?:is (?:it|this)|are we in)(?: now)?|what is the (?:current )?month")
_DAYS_UNTIL = re.compile(
    r"(?:how (?:many days|long)(?: is it| are there| is there)?(?: left)? (?:until|till|to|before)|how many (?:more )?days (?:until|till|to)"
    r"|(?:when|how far away) is) (?P<date>.+?)(?: from (?:now|today))?"
)


def answer(said: str, scene: Scene) -> SkillAnswer | None:
    """`said` is a request in plain form; None when it asks neither for a time nor for a date."""
    now = scene.now
    if _TIME.fullmatch(said):
        return SkillAnswer(f"It is {_clock_time(now)}.")
    if match := _TIME_IN.fullmatch(said):
        zone = _zone(match["place"])
        if zone is None:
            return None
        return SkillAnswer(
            f"In {match['place'].title()} it is {_clock_time(now.astimezone(zone))}{_other_day(now, zone)}."
        )
    if _DATE.fullmatch(said):
        return SkillAnswer(f"Today is {_long(now.date())}.")
    if match := _DATE_OF.fullmatch(said):
        return _day_answer(match["day"] or match["tomorrow"] or match["bare"], now.date())
    if _YEAR.fullmatch(said):
        return SkillAnswer(f"It is the year {now.year}.")
    if _MONTH.fullmatch(said):
        return SkillAnswer(f"It is {now:%B}.")
    if match := _WEEKDAY_OF.fullmatch(said):
        day = read_date(match["date"], now.date())
        return (
            None if day is None else SkillAnswer(f"{_month_day(day, now.date())} {_tense(day, now.date())} a {day:%A}.")
        )
    if match := _DAYS_UNTIL.fullmatch(said):
        return _until(match["date"], now.date(), asks_when=said.startswith("when"))
    return None


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


def _day_answer(text: str, today: date) -> SkillAnswer | None:
    """The date of tomorrow, yesterday, "in 3 weeks" or "10 days ago"."""
    known = {"today": 0, "tomorrow": 1, "yesterday": -1, "the day after tomorrow": 2, "the day before yesterday": -2}
    if text in known:
        day = today + timedelta(days=known[text])
        subject = text[:1].upper() + text[1:]
        return SkillAnswer(f"{subject} {_tense(day, today)} {_long(day)}.")
    match = re.fullmatch(r"(?:in )?(?P<number>.+?) (?P<unit>days?|weeks?)(?: (?P<way>from (?:now|today)|ago))?", text)
    if match is None:
        return None
    words = ["1"] if match["number"] in ("a", "one") else match["number"].split()
    number = read_number(words)
    if number is None or number[1] != len(words) or number[0].denominator != 1 or number[0] > 36_500:
        return None
    days = int(number[0]) * (7 if match["unit"].startswith("week") else 1)
    day = today + timedelta(days=-days if match["way"] == "ago" else days)
    return SkillAnswer(f"That {'was' if day < today else 'will be'} {_long(day)}.")


def _until(text: str, today: date, *, asks_when: bool) -> SkillAnswer | None:
    day = today + timedelta(days=1) if text == "tomorrow" else read_date(text, today)
    if day is None or (asks_when and text not in _FEASTS):
        return None
    days = (day - today).days
    name = (
        text.removeprefix("next ").removeprefix("the ")
        if text in _WEEKDAYS or text in _FEASTS
        else _month_day(day, today)
    )
    name = (
        name.title().replace("New Years", "New Year's").replace("Valentines", "Valentine's")
        if text in _FEASTS
        else name
    )
    if days < 0:
        return SkillAnswer(f"{_month_day(day, today)} was {-days} {'day' if days == -1 else 'days'} ago.")
    if days == 0:
        return SkillAnswer(f"That is today, {_long(day)}.")
    away = "1 day" if days == 1 else f"{days} days"
    return SkillAnswer(f"{name[:1].upper()}{name[1:]} is on {_long(day)}, {away} from now.")


def _clock_time(moment: datetime) -> str:
    hour = moment.hour % 12 or 12
    half = "a.m." if moment.hour < 12 else "p.m."
    return f"{hour} {half}".removesuffix(".") if moment.minute == 0 else f"{hour}:{moment:%M} {half}".removesuffix(".")


def _other_day(now: datetime, zone: ZoneInfo) -> str:
    there = now.astimezone(zone).date()
    if there == now.date():
        return ""
    return " tomorrow" if there > now.date() else " yesterday"


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
