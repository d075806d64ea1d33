"""Search over the reference and the manual: every word has to occur, and what has it in its title comes first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

MAX_QUERY_CHARS = 200
MAX_WORDS = 8
MAX_RESULTS = 40
CONTEXT_CHARS = 110
"""Length of an excerpt on each side of the first match."""

_WORD = re.compile(r"[^\s\"'`,;()]+")
_INLINE = re.compile(r"</?(?:a|code|em|strong|s)\b[^>]*>")
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class SearchEntry:
    """A place that can be found."""

    url: str
    title: str
    where: str
    """Title of the page, or of the family of operations."""
    names: str = ""
    """Paths, fields and codes: what is looked up rather than read."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    url: str
    title: SafeString
    """With the words marked."""
    where: str
    excerpt: SafeString


def words_of(query: str) -> list[str]:
    """Return the words of a query in lower case."""
    found = (word.strip(".:?!").casefold() for word in _WORD.findall(query[:MAX_QUERY_CHARS]))
    return list(dict.fromkeys(word for word in found if word))[:MAX_WORDS]


def search(entries: Sequence[SearchEntry], query: str) -> list[Result]:
    """The entries that have every word of the query, the best first; nothing for an empty query."""
    words = words_of(query)
    if not words:
        return []
    scored = [(_score(entry, words), number) for number, entry in enumerate(entries)]
    best = sorted((-score, number) for score, number in scored if score)[:MAX_RESULTS]
    return [_result(entries[number], words) for _, number in best]


def plain(html: str) -> str:
    """The words of HTML."""
    return " ".join(unescape(_TAG.sub(" ", _INLINE.sub("", html))).split())


def sections(html: str) -> Iterator[tuple[str, str, str]]:
    """The parts of a page under its headings: anchor, title, text. What comes before the first has neither."""
    parts = re.split(r'<h[23] id="([^"]+)">(.*?)</h[23]>', html, flags=re.DOTALL)
    yield "", "", plain(parts[0])
    for at in range(1, len(parts), 3):
        yield parts[at], plain(parts[at + 1]), plain(parts[at + 2])


def marked(text: str, words: Sequence[str]) -> SafeString:
    """The text as HTML, with every occurrence of a word in a `mark`."""
    pattern = re.compile("|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)), re.IGNORECASE)
    parts: list[str] = []
    at = 0
    for found in pattern.finditer(text):
        parts += [escape(text[at : found.start()]), f"<mark>{escape(found.group())}</mark>"]
        at = found.end()
    return mark_safe("".join([*parts, escape(text[at:])]))  # noqa: S308 (every part is escaped)


def _score(entry: SearchEntry, words: Sequence[str]) -> int:
    """0 where a word is missing."""
    title, names, text, where = (part.casefold() for part in (entry.title, entry.names, entry.text, entry.where))
    total = 0
    for word in words:
        score = 8 * (word in title) + 4 * (word in names) + 2 * (word in where) + min(3, text.count(word))
        if not score:
            return 0
        total += score + 8 * (re.search(rf"\b{re.escape(word)}\b", title) is not None)
    return total


def _result(entry: SearchEntry, words: Sequence[str]) -> Result:
    return Result(entry.url, marked(entry.title, words), entry.where, marked(_excerpt(entry, words), words))


def _excerpt(entry: SearchEntry, words: Sequence[str]) -> str:
    """The text around the first word that it has; the beginning where the words stand in the title or the names."""
    text = entry.text
    small = text.casefold()
    if not any(word in small for word in words):
        text = entry.names if any(word in entry.names.casefold() for word in words) else text
        small = text.casefold()
    at = min((small.find(word) for word in words if word in small), default=0)
    start, end = max(0, at - CONTEXT_CHARS), at + CONTEXT_CHARS
    if start:
        start = text.find(" ", start) + 1 or start
    if end < len(text):
        end = text.rfind(" ", start, end) if " " in text[start:end] else end
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"
