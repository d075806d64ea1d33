"""Sentence templates: the ways a request is worded, in a notation that can be read.

    Phrases("what time is it [now]", "(speak|talk) [a bit] slower", "spell {word}")

`[…]` may be there or not, `[…]*` any number of times, `(…|…)` is one of several, and `{name}` stands for one or more
words. A template matches a whole sentence in plain form, never a part of it. Those of a skill stand in a TOML file
beside it, by the name that the code calls them or with the fixed reply that they get.

Regular expressions would try the words of `[all|my|all my]*` in 2ⁿ ways. Here no step of a template is tried twice at
the same word, so the time grows with the length of the sentence and nothing else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TOKENS = re.compile(r"\[|\]\*?|\(|\)|\||\{\w+\}|[^\s\[\](){}|]+")


@dataclass(slots=True)
class _Step:
    """A step of a template: one of a word, any word, the edge of a slot, and a choice of what comes next."""

    word: str = ""
    is_any: bool = False
    slot: str = ""
    following: list[int] = field(default_factory=list)
    """Places of the steps that may come next, the preferred one first; empty at the end of the template."""


class Phrases:
    """Some templates that mean the same."""

    def __init__(self, *templates: str) -> None:
        self._templates = [_Template(template) for template in templates]

    def match(self, said: str) -> dict[str, str] | None:
        """The words of each slot, of the first template that fits; None when none does."""
        return next(self.matches(said), None)

    def matches(self, said: str) -> Iterator[dict[str, str]]:
        """The words of each slot, of every template that fits."""
        words = said.split()
        return (slots for template in self._templates if (slots := template.match(words)) is not None)

    def fits(self, said: str) -> bool:
        return self.match(said) is not None


def read(skill: str) -> dict[str, Any]:
    """The data of a skill, from the file beside it."""
    return tomllib.loads((Path(__file__).parent / f"{skill}.toml").read_text(encoding="utf-8"))


def data_rows(name: str) -> Iterator[list[str]]:
    """The rows of a table among the data; its first line says what the columns are."""
    lines = (Path(__file__).parent / "facts" / "data" / name).read_text(encoding="utf-8").splitlines()
    return (line.split("\t") for line in lines[1:])


def load(skill: str) -> tuple[dict[str, Phrases], tuple[tuple[Phrases, dict[str, Any]], ...]]:
    """The templates of a skill by name, and its fixed replies with the templates that get them, in the order in which
    they are tried."""
    data = read(skill)
    named = {name: Phrases(*templates) for name, templates in data.get("templates", {}).items()}
    return named, tuple((Phrases(*reply["templates"]), reply) for reply in data.get("replies", ()))


class _Template:
    def __init__(self, text: str) -> None:
        self._steps: list[_Step] = []
        self._tokens = _TOKENS.findall(text)
        self._at = 0
        self._start = self._choice(self._add())
        self._first_words = self._reachable_words()

    def match(self, words: list[str]) -> dict[str, str] | None:
        """The words of each slot; None when the template does not fit all of `words`."""
        if not words or (self._first_words is not None and words[0] not in self._first_words):
            return None
        tried: set[tuple[int, int]] = set()
        ahead: list[tuple[int, int, tuple[tuple[str, int], ...]]] = [(self._start, 0, ())]
        while ahead:
            place, at, edges = ahead.pop()
            if (place, at) in tried:
                continue
            tried.add((place, at))
            step = self._steps[place]
            if step.word or step.is_any:
                if at == len(words) or (step.word and step.word != words[at]):
                    continue
                at += 1
            elif step.slot:
                edges = (*edges, (step.slot, at))
            elif not step.following and at == len(words):
                return {
                    name: " ".join(words[begin:end])
                    for (name, begin), (_, end) in zip(edges[::2], edges[1::2], strict=True)
                }
            ahead.extend((following, at, edges) for following in reversed(step.following))
        return None

    def _add(self, *following: int, word: str = "", is_any: bool = False, slot: str = "") -> int:
        self._steps.append(_Step(word, is_any, slot, list(following)))
        return len(self._steps) - 1

    def _choice(self, end: int) -> int:
        """Read the alternatives up to a closing bracket; the step where they begin. All of them lead to `end`."""
        starts = [self._sequence(end)]
        while self._next() == "|":
            self._at += 1
            starts.append(self._sequence(end))
        return starts[0] if len(starts) == 1 else self._add(*starts)

    def _sequence(self, end: int) -> int:
        start = last = self._add()
        while (token := self._next()) not in ("", "|", ")", "]", "]*"):
            self._at += 1
            after = self._add()
            self._steps[last].following.append(self._item(token, after))
            last = after
        self._steps[last].following.append(end)
        return start

    def _item(self, token: str, after: int) -> int:
        """Read what `token` begins; the step where it begins. It leads to the step `after`."""
        if token.startswith("{"):
            close = self._add(after, slot=token[1:-1])
            word = self._add(close, is_any=True)
            self._steps[word].following.append(word)
            return self._add(word, slot=token[1:-1])
        if token not in ("[", "("):
            return self._add(after, word=token)
        again = self._add()
        start = self._choice(again)
        closing = self._next()
        self._at += 1
        if closing == "]*":
            self._steps[again].following += [start, after]
            return again
        self._steps[again].following.append(after)
        return self._add(start, after) if closing == "]" else start

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _reachable_words(self) -> frozenset[str] | None:
        """The words that a sentence may begin with; None when it may begin with any."""
        found, ahead, seen = set(), [self._start], set[int]()
        while ahead:
            place = ahead.pop()
            if place in seen:
                continue
            seen.add(place)
            step = self._steps[place]
            if step.is_any:
                return None
            if step.word:
                found.add(step.word)
            else:
                ahead += step.following
        return frozenset(found)
