"""Who may import whom: arrows point down, and rooms on one floor do not know each other."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "voiceapp"

FLOORS: dict[str, float] = {
    "protocol": 0,
    "errors": 0,
    "formats": 0,
    "failures": 0.5,
    "answers": 0.5,
    "drain": 0.5,
    "envelope": 0.5,
    "examples": 0.5,
    "offer": 0.5,
    "openapi": 0.5,
    "outbound": 0.5,
    "schemas": 0.5,
    "settings": 0.5,
    "storage": 0.5,
    "engines": 1,
    "accounts": 1,
    "leases": 1,
    "tasks": 2,
    "webhooks": 2,
    "health": 2,
    "ice": 2,
    "realtime": 3,
    "generation": 3,
    "retrieval": 3,
    "pages": 3,
    "pictures": 3,
    "compatible": 4,
    "docs": 4,
    "server": 4,
    "site": 4,
    "apps": 4,
    "api": 4,
    "urls": 4,
    "asgi": 4,
}
"""A room of `voiceapp/` and its floor. A new one has to be given a place here.

Between the ground and the first floor lie tools of the doors that know no other room: shapes of answers, the stop.
"""

ON_THE_GROUND = sys.stdlib_module_names | {"numpy"}
"""All that floor 0 may import from outside."""

SOCIABLE = (0, 0.5, 4)
"""On these floors rooms may know each other: at the top they put the house together. Elsewhere they are strangers."""


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "migrations" not in path.parts)


def room_of(dotted: str) -> str:
    """`voiceapp.engines.embedded.vad` → `engines`; empty for the package itself."""
    return [*dotted.split("."), ""][1]


def dotted_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path) -> set[str]:
    """Full names of what a module imports anywhere in it, relative ones resolved."""
    package = dotted_name(path) if path.name == "__init__.py" else dotted_name(path).rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            origin = ".".join(part for part in (above, node.module or "") if part)
            # `from voiceapp import formats` names a room, `from voiceapp.formats import identifier` a thing in one.
            found |= {f"{origin}.{alias.name}" for alias in node.names} if origin == "voiceapp" else {origin}
    return found


def arrows() -> list[tuple[str, str]]:
    """(module, imported module) within `voiceapp`, between different rooms."""
    return [
        (dotted_name(path), target)
        for path in modules()
        for target in sorted(imports_of(path))
        if target.split(".")[0] == "voiceapp" and room_of(target) != room_of(dotted_name(path))
        if {room_of(target), room_of(dotted_name(path))} <= FLOORS.keys()
    ]


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(dotted_name(path)) for path in modules()} - {""}
    assert rooms <= FLOORS.keys(), f"give these a floor: {sorted(rooms - FLOORS.keys())}"


def test_arrows_point_down() -> None:
    wrong = [
        f"{source} (floor {FLOORS[room_of(source)]:g}) imports {target} (floor {FLOORS[room_of(target)]:g})"
        for source, target in arrows()
        if FLOORS[room_of(target)] > FLOORS[room_of(source)]
    ]
    assert not wrong, "\n".join(wrong)


def test_rooms_of_one_floor_do_not_know_each_other() -> None:
    wrong = [
        f"{source} imports {target}"
        for source, target in arrows()
        if FLOORS[room_of(target)] == FLOORS[room_of(source)] not in SOCIABLE
    ]
    assert not wrong, "\n".join(wrong)


def test_the_ground_floor_needs_nothing_but_python_and_numpy() -> None:
    wrong = [
        f"{dotted_name(path)} imports {target}"
        for path in modules()
        if FLOORS.get(room_of(dotted_name(path))) == 0
        for target in sorted(imports_of(path))
        if target.split(".")[0] not in ON_THE_GROUND | {"voiceapp"}
    ]
    assert not wrong, "\n".join(wrong)


def test_engines_read_settings_of_django_but_know_none_of_its_rows() -> None:
    wrong = [
        f"{dotted_name(path)} imports {target}"
        for path in modules()
        if room_of(dotted_name(path)) == "engines"
        for target in sorted(imports_of(path))
        if target.startswith(("django.db", "django.contrib", "django.http", "channels"))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "name", "found"),
    [
        ("from . import b", "voiceapp/a/c.py", {"voiceapp.a"}),
        ("from .b import x", "voiceapp/a/c.py", {"voiceapp.a.b"}),
        ("from ..b import x", "voiceapp/a/c.py", {"voiceapp.b"}),
        ("from .b import x", "voiceapp/a/__init__.py", {"voiceapp.a.b"}),
        ("from voiceapp import b", "voiceapp/a/c.py", {"voiceapp.b"}),
        ("def f():\n    import voiceapp.b.d", "voiceapp/a/c.py", {"voiceapp.b.d"}),
    ],
)
def test_imports_are_found_however_they_are_written(
    source: str, name: str, found: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(source)

    assert imports_of(path) == found
