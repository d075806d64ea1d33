"""The time, the date, and how far away a day is."""

from __future__ import annotations

import calendar
import re
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from voiceapp.engines.assistant.skills.phrases import load, read
from voiceapp.engines.assistant.skills.reckoning.numbers import read_number, read_ordinal, whole_number
from voiceapp.engines.assistant.skills.reckoning.units import seconds_of
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.session import duration

_MONTHS = [name.lower() for name in calendar.month_name[1:]]
_WEEKDAYS = [name.lower() for name in calendar.day_name]
_FEASTS: dict[str, str] = read("reckoning/clock")["feasts"]
_PLACES: dict[str, str] = read("reckoning/clock")["places"]
_TEMPLATES, _ = load("reckoning/clock")
_TIME_OF_DAY = re.compile(
    r"(?:(?P<past>half|(?:a )?quarter|[a-z]+|\d\d?) (?:minutes )?(?P<to>past|to) )?(?P<hour>[a-z]+|\d\d?)"
    r"(?:[: ](?P<minute>\d\d|[a-z]+(?: [a-z]+)?))??"
    r" ?(?P<half>am|pm|in the morning|in the evening|in the afternoon|tonight|at night)?"
)
_NEAR_DAYS: dict[str, int] = read("reckoning/clock")["near_days"]


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks neither for a time nor for a date."""
    now = scene.now
    today = now.date()
    if _TEMPLATES["time"].fits(said):
        return SkillReply(f"It is {_clock_time(now)}")
    if (slots := _TEMPLATES["time_there"].match(said)) is not None:
        return _time_there(slots["place"], slots["time"], slots["other"], now)
    if (slots := _TEMPLATES["time_in"].match(said)) is not None:
        return _time_in(slots["place"], now)
    if (slots := _TEMPLATES["apart"].match(said)) is not None:
        return _apart(slots["place"], now)
    if _TEMPLATES["today"].fits(said):
        return SkillReply(f"Today is {_long(today)}.")
    if _TEMPLATES["year"].fits(said):
        return SkillReply(f"It is the year {now.year}.")
    if _TEMPLATES["month"].fits(said):
        return SkillReply(f"It is {now:%B}.")
    if (slots := _TEMPLATES["day_at"].match(said)) and (found := _day_at(slots["day"], today)):
        return found
    if (slots := _TEMPLATES["weekday_of"].match(said)) and (day := read_date(slots["day"], today)):
        return SkillReply(f"{_month_day(day, today)} {_tense(day, today)} a {day:%A}.")
    if (slots := _TEMPLATES["until_time"].match(said)) and (then := time_of_day(slots["time"], now)):
        return SkillReply(f"It is {duration(round((then - now).total_seconds()))} until {_named_time(then)}")
    if (slots := _TEMPLATES["until"].match(said)) is not None:
        return _until(slots["day"], today, in_weeks="weeks" in said)
    if (slots := _TEMPLATES["when"].match(said)) is not None and _feast(slots["day"]) in _FEASTS:
        return _until(slots["day"], today)
    if (slots := _TEMPLATES["between"].match(said)) is not None:
        return _between(slots["from"], slots["to"], today)
    return _of_the_calendar(said, today)


def _of_the_calendar(said: str, today: date) -> SkillReply | None:
    if (slots := _TEMPLATES["leap_year"].match(said)) is not None:
        words = {"this year": today.year, "next year": today.year + 1, "last year": today.year - 1}
        year = words.get(slots["year"]) or (int(slots["year"]) if slots["year"].isdecimal() else 0)
        if 0 < year < 10_000:
            return SkillReply(
                f"{'Yes' if calendar.isleap(year) else 'No'}, {year} has {365 + calendar.isleap(year)} days."
            )
    if _TEMPLATES["next_leap_year"].fits(said):
        year = next(year for year in range(today.year + 1, today.year + 9) if calendar.isleap(year))
        return SkillReply(f"The next leap year is {year}.")
    if (slots := _TEMPLATES["month_days"].match(said)) is not None:
        month, _, year_said = slots["month"].partition(" ")
        if month == "february" and not year_said:
            return SkillReply("February has 28 days, and 29 in a leap year.")
        named = re.fullmatch(r"(?:(?:of |in )?(?:the year )?([1-9]\d{3}))?", year_said)
        if month in _MONTHS and named is not None:
            days = calendar.monthrange(int(named[1] or today.year), _MONTHS.index(month) + 1)[1]
            return SkillReply(f"{f'In {named[1]} ' if named[1] else ''}{month.title()} has {days} days.")
    return None


def _between(first: str, second: str, today: date) -> SkillReply | None:
    begin, end = (today if text in ("today", "now") else read_date(text, today) for text in (first, second))
    if begin is None or end is None:
        return None
    if end < begin and not re.search(r"\b\d{4}$", second):
        end = read_date(second, begin) or end
    days = abs((end - begin).days)
    both = " to ".join(f"{day:%B} {day.day}, {day.year}" for day in (begin, end))
    return SkillReply(f"From {both}, it is {days} {'day' if days == 1 else 'days'}.")


def time_of_day(text: str, now: datetime) -> datetime | None:
    """The next time called `text`: "midnight", "half past six", "7:30 pm"; "seven" is the nearer of two."""
    match = _TIME_OF_DAY.fullmatch(re.sub(r" oclock\b", "", text))
    if match is None:
        return None
    named = {"midnight": "0", "noon": "12", "midday": "12"}.get(match["hour"])
    past = {"half": "30", "quarter": "15", "a quarter": "15", None: "0"}.get(match["past"], match["past"])
    numbers = [whole_number(words) for words in (named or match["hour"], match["minute"] or "0", past)]
    hour, minute, past_minutes = (-1 if number is None or number > 59 else int(number) for number in numbers)
    if not 0 <= hour <= 24 or minute < 0 or past_minutes < 0:
        return None
    is_open = match["half"] is None and named is None and 1 <= hour <= 12
    hour = hour % 12 + 12 * (match["half"] not in ("am", "in the morning")) if match["half"] else hour
    minutes = hour * 60 + minute + (-past_minutes if match["to"] == "to" else past_minutes)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    times = [today + timedelta(minutes=minutes + 720 * half) for half in range(-2, 5) if is_open or half % 2 == 0]
    return min(then for then in times if then > now)


def _time_in(place: str, now: datetime) -> SkillReply | None:
    zone = _zone(place)
    if zone is None:
        seconds = seconds_of(place)
        return SkillReply(f"It will be {_clock_time(now + timedelta(seconds=float(seconds)))}") if seconds else None
    there = now.astimezone(zone)
    return SkillReply(f"In {place.title()} it is {_clock_time(there)}{_other_day(now, there)}")


def _time_there(place: str, time: str, other: str, now: datetime) -> SkillReply | None:
    there, here = _zone(place), _zone(other)
    then = time_of_day(time, now.astimezone(here)) if here and there else None
    if then is None:
        return None
    moment = then.astimezone(there)
    days = (moment.date() - then.date()).days
    return SkillReply(f"Then it is {_clock_time(moment)}{('', ' on the next day.', ' on the day before.')[days]}")


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
    if text.endswith(" next year"):
        return read_date(text.removesuffix(" next year"), date(today.year + 1, 1, 1))
    text = re.sub(r"^(?:next|this|on|coming|(?:my|our) .+? on) |(?<=day) next week$", "", text)
    if (rule := _FEASTS.get(_feast(text))) is not None:
        days = (_feast_day(rule, today.year + later) for later in (0, 1))
        return next(day for day in days if day >= today)
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
        while not calendar.isleap(year) or date(year, 2, 29) < today:
            year += 1
        return date(year, 2, 29)
    this_year = date(today.year, month, day)
    return this_year if this_year >= today else date(today.year + 1, month, day)


def _feast(text: str) -> str:
    return re.sub(r"^the (?!fourth|year|new|end)| next year$|^(?:st|saint) (?=valentines)", "", text)


def _feast_day(rule: str, year: int) -> date:
    """The day of a rule among the data: `12-25`, `11-thu-4`, `05-mon-last`, `11-thu-4+1` or `easter-2`."""
    if rule.startswith("easter"):
        return _easter(year) + timedelta(days=int(rule.removeprefix("easter")))
    rule, _, later = rule.partition("+")
    month, day, *nth = rule.split("-")
    if not nth:
        return date(year, int(month), int(day))
    weekday = next(at for at, name in enumerate(_WEEKDAYS) if name.startswith(day))
    days = [week[weekday] for week in calendar.monthcalendar(year, int(month)) if week[weekday]]
    return date(year, int(month), days[-1 if nth == ["last"] else int(nth[0]) - 1]) + timedelta(days=int(later or 0))


def _easter(year: int) -> date:
    """Easter Sunday, by the anonymous Gregorian algorithm."""
    century, place = divmod(year, 100)
    epact = (19 * (year % 19) + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (place // 4) - epact - place % 4) % 7
    correction = (year % 19 + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * correction + 114, 31)
    return date(year, month, day + 1)


def _day_at(text: str, today: date) -> SkillReply | None:
    """The date of tomorrow, yesterday, "in 3 weeks" or "10 days ago"."""
    if text in _NEAR_DAYS:
        day = today + timedelta(days=_NEAR_DAYS[text])
        subject = re.sub(r"^(after|before)", r"the day \1", text).removesuffix("s date")
        return SkillReply(f"{subject[:1].upper()}{subject[1:]} {_tense(day, today)} {_long(day)}.")
    if text.split()[-1] in _WEEKDAYS and (weekday := read_date(text, today)):
        return SkillReply(f"That is {_long(weekday)}.")
    ago = _TEMPLATES["ago"].match(text)
    slots = ago or _TEMPLATES["distance"].match(text)
    if slots is None:
        return None
    words = ["1"] if slots["number"] in ("a", "one") else slots["number"].split()
    number = read_number(words)
    if number is None or number[1] != len(words) or number[0].denominator != 1 or number[0] > 36_500:
        return None
    days = int(number[0]) * (7 if re.search(r"\bweeks?\b", text) else 1)
    day = today + timedelta(days=-days if ago else days)
    return SkillReply(f"That {'was' if ago else 'will be'} {_long(day)}.")


def _until(text: str, today: date, *, in_weeks: bool = False) -> SkillReply | None:
    day = today + timedelta(days=1) if text == "tomorrow" else read_date(text, today)
    if day is None:
        return None
    days = (day - today).days
    if days < 0:
        return SkillReply(f"{_month_day(day, today)} was {-days} {'day' if days == -1 else 'days'} ago.")
    if days == 0:
        return SkillReply(f"That is today, {_long(day)}.")
    away = "1 day" if days == 1 else f"{days} days"
    if in_weeks and days >= 7:
        away = f"{days // 7} weeks and {days % 7} days"
    name = f"{_feast_name(_feast(text))} is on" if _feast(text) in _FEASTS else "That is"
    return SkillReply(f"{name} {_long(day)}, {away} from now.")


def _feast_name(text: str) -> str:
    name = re.sub(
        r"\b(new year|valentine|patrick|mother|father|women|president|veteran)s\b", r"\1's", text.removeprefix("the ")
    )
    return name if name.startswith("end ") else " ".join(word.capitalize() for word in name.split())


def _named_time(moment: datetime) -> str:
    return {(0, 0): "midnight.", (12, 0): "noon."}.get((moment.hour, moment.minute)) or _clock_time(moment)


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
