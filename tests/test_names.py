"""One public class for each name, so that a reader knows which one is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "voiceapp"
DJANGO_S = frozenset({"Command", "Migration", "DatabaseWrapper"})
"""Names that Django prescribes."""


def test_public_class_names_are_unique() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in DJANGO_S:
                homes[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
