"""Every regular expression that may read a caller's text takes time in proportion to it."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import voiceapp
from tests.thorough import usually

LENGTHS = usually(1_000, 10_000, 50_000, 250_000, more=(1_000_000,))
CPU_S_PER_CHAR = 2e-6
CPU_S = 0.03
"""Beside what the length takes: the clock is coarse."""
ELSEWHERE = "voiceapp.engines.assistant.skills"
"""Tried by the tests of skills, which read 400 characters."""
BOUNDED = {
    ("voiceapp.docs.colouring", "_TOKENS"): "programs of the documentation",
    ("voiceapp.docs.search", "_INLINE"): "pages of the documentation",
    ("voiceapp.docs.search", "_TAG"): "pages of the documentation",
    ("voiceapp.engines.assistant.quotation", "UNSPEAKABLE"): "sentences of operators' documents",
    ("voiceapp.engines.piper.clauses", "_PARTS"): "pieces of 220 characters",
    ("voiceapp.engines.sentences", "_END"): "windows of 300 characters",
    ("voiceapp.protocol.wire.json_schemas", "_PIECE"): "patterns of 500 characters",
}
"""Those that are given so little that their time does not matter."""


MATCHED = {("voiceapp.protocol.forwarded.texts", "_APPEND"), ("voiceapp.protocol.forwarded.texts", "_DELTA")}
"""Tried at the beginning of a text only, where the sources do not say so by their names."""


def patterns() -> Iterator[tuple[str, str, re.Pattern[Any]]]:
    """Module, name and pattern of all that a module holds, by itself or in tables."""
    seen = set()
    for module in pkgutil.walk_packages(voiceapp.__path__, "voiceapp."):
        if module.name.startswith(ELSEWHERE) or "migrations" in module.name or module.name.endswith(".child"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            for pattern in _within(value):
                if (pattern.pattern, pattern.flags) not in seen:
                    seen.add((pattern.pattern, pattern.flags))
                    yield module.name, name, pattern


def _within(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _within(item)
    elif isinstance(value, dict):
        yield from _within(list(value.values()))


def letters_of(parsed: Any) -> Iterator[int]:
    for item in parsed:
        if isinstance(item, tuple) and len(item) == 2 and item[0] in (_constants.LITERAL, _constants.RANGE):
            yield item[1] if isinstance(item[1], int) else item[1][0]
        elif isinstance(item, tuple | list | _parser.SubPattern):
            yield from letters_of(item)


def repeated(pattern: re.Pattern[Any]) -> Iterator[str]:
    """What a hostile text may repeat."""
    found = dict.fromkeys(map(chr, letters_of(_parser.parse(pattern.pattern, pattern.flags))))
    letters = [*list(found)[:7], *"a1 .\n"]
    yield from dict.fromkeys(one + other for one in letters for other in ["", *letters] if one != other)


def cpu_s(pattern: re.Pattern[Any], methods: set[str], word: str, chars: int) -> float:
    text: Any = (word * chars)[: chars - 1] + "\x01"
    if isinstance(pattern.pattern, bytes):
        text = text.encode("latin-1", "replace")
    begun = time.thread_time()
    if methods <= {"match", "fullmatch"}:
        for method in methods:
            getattr(pattern, method)(text)
    else:
        pattern.sub(text[:0], text)
    return time.thread_time() - begun


def test_no_regular_expression_takes_longer_than_its_text_is_long() -> None:
    sources = "".join(path.read_text() for path in Path(voiceapp.__path__[0]).rglob("*.py"))
    tried, slow = 0, []
    for module, name, pattern in patterns():
        if (module, name) in BOUNDED:
            continue
        tried += 1
        methods = set(
            re.findall(rf"\b{re.escape(name)}\.(match|fullmatch|search|sub|split|findall|finditer)\(", sources)
        )
        if (module, name) in MATCHED:
            methods = {"match"}
        worst = max(repeated(pattern), key=lambda word: cpu_s(pattern, methods or {"sub"}, word, LENGTHS[0]))
        for chars in LENGTHS:
            most_s = CPU_S + chars * CPU_S_PER_CHAR
            if all(cpu_s(pattern, methods or {"sub"}, worst, chars) > most_s for _ in range(3)):
                slow.append(f"{module}.{name}: {chars:,} characters of {worst!r}")
                break
    assert not slow, "\n".join(slow)
    assert tried > 60
