"""`docs/promises.md` names the test that proves each promise: the tests exist, and run for longer where it says so."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \| .*\|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
SOAKED = re.compile(r"pytest [^\n]*?(tests/[\w/]+\.py)([^\n]*)")
ROWS = {
    int(number): (promise, proof) for number, promise, proof in ROW.findall((ROOT / "docs/promises.md").read_text())
}


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions if function.name.startswith("test_"))


def test_promises_are_numbered_without_a_gap() -> None:
    assert sorted(ROWS) == list(range(1, len(ROWS) + 1))
    assert len(ROWS) >= 35


@pytest.mark.parametrize("number", sorted(ROWS))
def test_what_proves_a_promise_exists(number: int) -> None:
    promise, proof = ROWS[number]
    named = TEST.findall(proof)
    assert named, promise
    for path, name in named:
        assert (ROOT / path).is_file(), f"{path} does not exist"
        assert name in names_in(path), f"{path} has no {name}"
    rest = TEST.sub("", proof).replace("and `make soak`", "")
    assert rest.strip() == "", f"not read: {rest}"


@pytest.mark.parametrize("number", [number for number in sorted(ROWS) if "`make soak`" in ROWS[number][1]])
def test_what_is_run_for_longer_is_in_the_makefile(number: int) -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\nsoak:")[2].partition("\n\n")[0]
    soaked = {
        (path, chosen)
        for path, options in SOAKED.findall(recipe)
        for chosen in re.findall(r"-k (\w+)", options) or [""]
    }
    named = TEST.findall(ROWS[number][1])
    assert any(path == file and part in name for path, name in named for file, part in soaked), soaked
