"""Sentence templates: the ways a request is worded, in a notation that can be read.

    Phrases("what time is it [now]", "(speak|talk) [a bit] slower", "spell {word}")

`[…]` may be there or not, `[…]*` any number of times, `(…|…)` is one of several, and `{name}` stands for one or more
words. A template matches a whole sentence in plain form, never a part of it.
"""

from __future__ import annotations

import re

_TOKENS = re.compile(r"\[|\]\*?|\(|\)|\||\{\w+\}|[^\s\[\](){}|]+")
_OPERATORS = {"[": "(?:", "]": ")?", "]*": ")*", "(": "(?:", ")": ")", "|": "|"}


class Phrases:
    """Some templates that mean the same."""

    def __init__(self, *templates: str) -> None:
        self._patterns = [re.compile("".join(map(_translated, _TOKENS.findall(template)))) for template in templates]

    def match(self, said: str) -> dict[str, str] | None:
        """The words of each slot, of the first template that fits; None when none does."""
        for pattern in self._patterns:
            if (found := pattern.fullmatch(f"{said} ")) is not None:
                return {name: words.strip() for name, words in found.groupdict().items() if words}
        return None

    def fits(self, said: str) -> bool:
        return self.match(said) is not None


def _translated(token: str) -> str:
    """One token as a regular expression; every word brings the space after it."""
    if token in _OPERATORS:
        return _OPERATORS[token]
    if token.startswith("{"):
        return rf"(?P<{token[1:-1]}>(?:\S+ )+?)"
    return re.escape(token) + " "
