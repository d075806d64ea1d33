"""The tree of errors is drawn as it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import voiceapp
from voiceapp import errors
from voiceapp.docs.codes import REFUSALS

PACKAGE = Path(voiceapp.__file__).parent
LINE = re.compile(r"( +)(\w+) +(\d{3})(?: {3}(\S+\.py)?.*)?")

Row = tuple[str, str, int, str]
"""Class, its parent, HTTP status, home (empty for errors.py)."""


def drawn() -> set[Row]:
    rows: set[Row] = set()
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := LINE.fullmatch(line):
            depth = len(found[1]) // 2 - 2
            del above[depth:]
            rows.add((found[2], above[-1] if above else "", int(found[3]), found[4] or ""))
            above.append(found[2])
    return rows


def status_of(node: ast.ClassDef) -> int | None:
    for line in node.body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "http_status":
            return int(ast.literal_eval(line.value))
        if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "http_status" and line.value:
            return int(ast.literal_eval(line.value))
    return None


def defined() -> set[Row]:
    """Every class below VoiceError; public class names are unique in the project."""
    classes: dict[str, tuple[str, int | None, str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                parent = ast.unparse(node.bases[0]) if node.bases else ""
                home = path.relative_to(PACKAGE).as_posix()
                classes[node.name] = (parent, status_of(node), "" if home == "errors.py" else home)
    rows: set[Row] = set()
    found = [("VoiceError", "", 0)]
    for name, parent, inherited in found:
        _, own, home = classes[name]
        status = inherited if own is None else own
        rows.add((name, parent, status, home))
        found += [(child, name, status) for child, (above, _, _) in classes.items() if above == name]
    return rows


def test_the_tree_is_drawn_as_it_is() -> None:
    assert drawn() == defined()


def codes() -> set[str]:
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and status_of(node) is not None:
                found |= {
                    str(ast.literal_eval(line.value))
                    for line in node.body
                    if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "code"
                }
    return found


def test_the_reference_says_what_to_do_about_every_code() -> None:
    assert codes() - {"invalid_request_error"} <= {code.code for code in REFUSALS}
