"""Bounds of callers' JSON schemas: the most that an engine is given to compile into a grammar.

Native code compiles the grammar and nothing interrupts it: llama.cpp needed 54 s for 10,000 enum members and crashed at
a `$ref` that leads to itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

MAX_NODES = 500
"""Subschemas and enum members of one schema."""
MAX_CHOICES = 200
"""Members of one enum, anyOf, oneOf or allOf."""
MAX_CHOICES_OF_TOOLS = 1_000
"""Enum members of all tools of a request."""
MAX_NODES_OF_TOOLS = 5_000
MAX_PROPERTIES = 100
MAX_DEPTH = 12
MAX_COUNT = 1_000
"""Least length, and count in a pattern: llama.cpp refuses more than 2,000, and takes a greatest length of any size."""
MAX_REFERENCE_CHARS = 1_000
MAX_CHARS_OF_PATTERNS = 40_000
"""Characters of the patterns of one schema, or of all tools of a request."""
MAX_PATTERN_CHARS = 200
MAX_FORMAT_PATTERN_CHARS = 500
"""Beside a `format`, where client libraries write the pattern: zod's for a date and time has 320 characters."""
MAX_REPETITIONS = 32
"""Quantifiers of one pattern: the cost of optional characters in a row grows with the fourth power of their number."""

_CHOICES = frozenset(("enum", "anyOf", "oneOf", "allOf"))
_COUNTS = frozenset(("minLength", "minItems", "minProperties", "minContains"))
_DATA = frozenset(("const", "default", "enum", "example", "examples"))
_MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))
_PIECE = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|<\w+>))?|[)|^$*+?]|\{\d+(?:,\d*)?\}|.", re.DOTALL)


def check_schema(schema: dict[str, Any]) -> None:
    """Check that a schema stays inside the bounds.

    Raises:
        ValueError: if it does not; the text says why.
    """
    _Reading(schema)


def check_tools(schemas: Iterable[dict[str, Any]]) -> None:
    """Check that the schemas of a request's tools stay inside the bounds together.

    Raises:
        ValueError: if one of them does not, or all together do not.
    """
    choices = nodes = chars = 0
    for number, schema in enumerate(schemas):
        try:
            reading = _Reading(schema)
        except ValueError as error:
            raise ValueError(f"in tools[{number}], {error}") from None
        choices += reading.choices
        nodes += reading.nodes
        chars += reading.chars
        together = "all tools together have"
        _at_most(choices, MAX_CHOICES_OF_TOOLS, "enum members", together)
        _at_most(nodes, MAX_NODES_OF_TOOLS, "subschemas and enum members", together)
        _at_most(chars, MAX_CHARS_OF_PATTERNS, "characters in patterns", together)


class _Reading:
    """One schema, read to its end."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self.nodes = self.choices = self.chars = 0
        self._references: list[str] = []
        self._schemas: set[int] = set()
        self._ended: set[int] = set()
        """Schemas from which every `$ref` was followed to its end."""
        self._read(root, 0)
        for reference in self._references:
            self._follow(reference)

    def _read(self, schema: dict[str, Any], depth: int) -> None:
        self._schemas.add(id(schema))
        self.nodes += 1
        _at_most(depth, MAX_DEPTH, "levels of subschemas")
        for name, value in schema.items():
            if name in _CHOICES and isinstance(value, list):
                _at_most(len(value), MAX_CHOICES, f"members of {name}")
            if name == "enum" and isinstance(value, list):
                self.choices += len(value)
                self.nodes += len(value)
            elif name in _COUNTS and isinstance(value, int | float):
                _at_most(value, MAX_COUNT, f"for {name}")
            elif name in _REFERENCES and isinstance(value, str):
                _at_most(len(value), MAX_REFERENCE_CHARS, f"characters in a {name}")
                self._references.append(value)
            elif name == "pattern" and isinstance(value, str):
                self.chars += len(value)
                _at_most(self.chars, MAX_CHARS_OF_PATTERNS, "characters in patterns")
                _check_pattern(value, MAX_FORMAT_PATTERN_CHARS if "format" in schema else MAX_PATTERN_CHARS)
            elif name == "properties" and isinstance(value, dict):
                _at_most(len(value), MAX_PROPERTIES, "properties in an object")
            _at_most(self.nodes, MAX_NODES, "subschemas and enum members")
            if name not in _DATA:
                for part in _parts(name, value):
                    self._read(part, depth + 1)

    def _follow(self, reference: str) -> None:
        """Follow a `$ref` until it leads to more than another `$ref`."""
        passed: set[int] = set()
        following: object = reference
        while isinstance(following, str):
            target = self._target(following)
            if isinstance(target, bool) or id(target) in self._ended:
                break
            if id(target) not in self._schemas:
                raise ValueError(f"$ref '{following[:80]}' does not lead to a schema inside this one")
            if id(target) in passed:
                raise ValueError(f"$ref '{reference[:80]}' leads to itself")
            passed.add(id(target))
            following = target.get("$ref")
        self._ended |= passed

    def _target(self, reference: str) -> Any:
        start, *parts = unquote(reference).split("/")
        target: Any = self._root if start == "#" else None
        for part in parts:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list):
                is_index = name.isdecimal() and len(name) < 4 and int(name) < len(target)
                target = target[int(name)] if is_index else None
            else:
                target = target.get(name) if isinstance(target, dict) else None
        return target


def _parts(name: str, value: object) -> list[dict[str, Any]]:
    """Return the subschemas under a keyword, known or not: a `$ref` can lead to any of them."""
    values: Iterable[object] = value if isinstance(value, list) else (value,)
    if isinstance(value, dict) and name in _MAPS:
        values = value.values()
    return [part for part in values if isinstance(part, dict)]


def _at_most(number: float, limit: int, unit: str, owner: str = "the schema has") -> None:
    if number > limit:
        raise ValueError(f"{owner} more than {limit:,} {unit}")


class _Group:
    """A group of a pattern as far as it was read."""

    def __init__(self) -> None:
        self._atoms = 0
        self._begins_repeated = self._ends_repeated = False
        """The alternative that is being read begins or ends with a repetition."""
        self._last_count = 1
        self.count = 1
        """Greatest number of times that something in it is written out."""
        self.is_loose = False
        """An alternative begins and ends with a repetition."""

    def add(self, group: _Group | None = None) -> None:
        self._atoms += 1
        self._ends_repeated = group is not None and group.is_loose
        self._last_count = 1 if group is None else group.count
        if self._atoms == 1:
            self._begins_repeated = self._ends_repeated
        self.count = max(self.count, self._last_count)

    def repeat(self, times: str) -> None:
        if self._ends_repeated and times != "?":
            raise ValueError("a pattern repeats a group that begins and ends with a repetition")
        counts = [int(number) for number in re.findall(r"\d+", times)]
        self._last_count *= max(counts, default=1)
        self.count = max(self.count, self._last_count)
        _at_most(self.count, MAX_COUNT, "for a count in a pattern")
        if len(counts) != 1 or "," in times:
            self._ends_repeated = True
            self._begins_repeated |= self._atoms == 1

    def end_alternative(self) -> None:
        self.is_loose |= self._begins_repeated and self._ends_repeated
        self._atoms = 0
        self._begins_repeated = self._ends_repeated = False


def _check_pattern(pattern: str, limit: int) -> None:
    _at_most(len(pattern), limit, "characters in a pattern")
    pieces = _PIECE.findall(pattern)
    _at_most(sum(piece[0] in "*+?{" for piece in pieces), MAX_REPETITIONS, "repetitions in a pattern")
    groups = [_Group()]
    for piece in pieces:
        if piece[0] == "(":
            groups.append(_Group())
        elif piece == ")" and len(groups) > 1:
            group = groups.pop()
            group.end_alternative()
            groups[-1].add(group)
        elif piece == "|":
            groups[-1].end_alternative()
        elif piece in "*+?" or (piece[0] == "{" and len(piece) > 1):
            groups[-1].repeat(piece)
        elif piece not in "^$":
            groups[-1].add()
