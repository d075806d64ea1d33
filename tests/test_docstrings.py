"""Docstrings begin with a sentence and name errors in one form, so that a reader finds them in one place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "voiceapp"
ENTRY = re.compile(r"    [A-Za-z][\w.]*: \S")
"""A line of the block: one class and its condition. A condition that goes on is indented further."""


def documented(source: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield getattr(node, "name", ""), text


def faults(text: str) -> str:
    """What is wrong with a docstring; empty when nothing is."""
    prose, has_block, block = text.partition("\nRaises:\n")
    if not prose.strip() or re.match(r"Raises\b", text):
        return "does not begin with a sentence"
    if re.search(r"(?<!\w)[Rr]aises:? `?[A-Z]\w*(Error|Unavailable|Refused|Found|Parameter|Failed|Timeout)", prose):
        return "names an error outside the Raises block"
    if not has_block:
        return ""
    lines = block.splitlines()
    if not lines or not all(ENTRY.match(line) or line.startswith("        ") for line in lines):
        return "has a Raises block that is not last, or does not hold one class and its condition per line"
    return ""


def test_docstrings_begin_with_a_sentence_and_name_errors_in_one_form() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}: {name} {fault}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, text in documented(path.read_text())
        if (fault := faults(text))
    ]
    assert not wrong, "\n".join(wrong)
