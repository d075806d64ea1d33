"""Texts that a language model is given around an operator's and a caller's instructions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

PREAMBLE = """\
You are talking with a person. Your reply is read aloud to them while you write it, and their words come to you from \
speech recognition, so some may be misheard: go by what they probably meant, and ask back where it matters. Reply as \
one speaks: in short sentences, usually one to three of them. Write no lists, headings, tables, links, emoji or other \
markup. Write numbers, times, units and abbreviations as one says them.\
"""
"""Stands first where replies are spoken, so that the beginning of a prompt is the same for all conversations."""

VARIABLE = re.compile(r"\{\{\s*(\w{1,64})\s*\}\}")


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with the variables in it, such as `{{name}}`; those without a value are left out."""
    return VARIABLE.sub(lambda found: variables.get(found[1], ""), text)


def today(time_zone: str, now: datetime) -> str:
    """Return the day and the caller's time zone; stands last, because it changes."""
    day = now.astimezone(ZoneInfo(time_zone))
    return f"Today is {day:%A}, {day.day} {day:%B %Y}. The caller's time zone is {time_zone}."
