"""Who may import whom: arrows point down, and rooms on one floor do not know each other."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "voiceapp"

ROOMS: dict[float, str] = {
    4: "server operators api urls asgi docs compatible",
    3: "realtime speech generation retrieval images pages",
    2: "tasks webhooks health ice relays",
    1: "engines accounts agents leases",
    0.5: "http catalogue database event_loops load outbound disk drain memory metrics sealing settings storage tracing",
    0: "protocol errors formats",
}
"""The rooms of `voiceapp/`, by floor. A new one has to be given a place here and in CONTRIBUTING.md."""
FLOORS: dict[str, float] = {room: floor for floor, rooms in ROOMS.items() for room in rooms.split()}

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


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports_of(path: Path) -> set[str]:
    """Full names of what a module imports anywhere in it, relative ones resolved."""
    package = dotted_name(path) if path.name == "__init__.py" else dotted_name(path).rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
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
    assert rooms == FLOORS.keys(), f"give these a floor, or take it from them: {sorted(rooms ^ FLOORS.keys())}"


def block_of(text: str, heading: str) -> list[str]:
    """The lines of the first indented block under a heading of CONTRIBUTING.md, without the indent."""
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [line[4:] for line in section.splitlines() if line.startswith("    ")]


def floors_drawn(lines: list[str]) -> dict[float, set[str]]:
    """The table as it is drawn: a floor, its rooms, a remark; a line without a floor goes on with the one above."""
    drawn: dict[float, set[str]] = {}
    floor = 0.0
    for line in lines:
        if line[0] != " ":
            floor = 0.5 if line[0] == "½" else float(line[0])
        rooms = line[1:].strip().partition("   ")[0]
        drawn.setdefault(floor, set()).update(rooms.split())
    return drawn


def test_contributing_draws_the_same_floors() -> None:
    drawn = floors_drawn(block_of((ROOT / "CONTRIBUTING.md").read_text(), "Who may import whom"))
    assert drawn == {floor: set(rooms.split()) for floor, rooms in ROOMS.items()}


def test_every_path_that_contributing_names_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = [path for path in re.findall(r"`([\w./]+/[\w./]*|[\w/]+\.(?:py|js|md|in))`", text) if "<" not in path]
    layout, folders = [], [ROOT]
    for line in block_of(text, "Where things live"):
        indent = (len(line) - len(line.lstrip())) // 2
        names = re.match(r" *((?:[\w.]+(?:/|\.\w+)(?:[\w./]*) *?)+)(?: {2,}|$)", line)
        if names:
            del folders[indent + 1 :]
            for name in names[1].split():
                layout.append(folders[indent] / name)
            folders.append(layout[-1])
    missing = [path for path in paths if not any((root / path).exists() for root in (ROOT, PACKAGE))]
    missing = [path for path in missing if "/" in path or not any(PACKAGE.rglob(path))]  # a file of several rooms
    assert layout
    assert [*missing, *(str(path.relative_to(ROOT)) for path in layout if not path.exists())] == []


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


def run_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when a module is imported: those of its functions do not, and types are not there then."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from run_on_import(child)


def test_imports_go_in_no_circle() -> None:
    """So any module may be the one that is imported first."""
    names = {dotted_name(path) for path in modules()}
    graph: dict[str, set[str]] = {}
    for path in modules():
        needed = graph[dotted_name(path)] = set()
        for node in run_on_import(tree_of(path)):
            if isinstance(node, ast.Import):
                needed |= {alias.name for alias in node.names} & names
            elif isinstance(node, ast.ImportFrom):
                given = {f"{node.module}.{alias.name}" for alias in node.names}
                needed |= (given & names) or ({node.module or ""} & names)
    TopologicalSorter(graph).prepare()


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


SHARED_BY_PROVIDERS = {"models", "sound"}


def test_nothing_outside_engines_and_catalogue_names_a_provider() -> None:
    rooms = {path.name for path in (PACKAGE / "engines").iterdir() if path.is_dir()} - SHARED_BY_PROVIDERS
    packages = tuple(f"voiceapp.engines.{name}" for name in rooms)
    wrong = [
        f"{dotted_name(path)} imports {target}"
        for path in modules()
        if room_of(dotted_name(path)) not in ("engines", "catalogue")
        for target in sorted(imports_of(path))
        if target.startswith(packages)
    ]
    assert not wrong, "\n".join(wrong)


PROBED = frozenset({"provider", "model", "model_name", "engine", "card"})
"""Variables and fields that hold a model, its name, or what serves it."""
LOOKS_INTO_A_NAME = frozenset({"startswith", "endswith", "removeprefix", "removesuffix", "find", "index", "count"})
FAMILIES = re.compile(r"(gpt|qwen|whisper|claude|llama|gemma|mistral|cosyvoice|paraformer|tts-|dall-e)", re.IGNORECASE)


def is_probed(node: ast.AST) -> bool:
    """Whether an expression is a model, its name or its provider: `model`, `wish.model`, `str(card).lower()`."""
    if isinstance(node, ast.Call):
        return is_probed(node.func) or any(map(is_probed, node.args))
    if isinstance(node, ast.Attribute):
        return node.attr in PROBED or (node.attr in ("lower", "casefold", "name") and is_probed(node.value))
    return isinstance(node, ast.Name) and node.id in PROBED


def texts_in(node: ast.AST) -> list[str]:
    return [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def is_a_probe(node: ast.AST) -> bool:
    """Whether a piece of code decides by a model's name or a provider's attributes instead of by the card."""
    match node:
        case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[subject, *_]):
            return is_probed(subject)
        case ast.Call(func=ast.Attribute(value=subject, attr=attr), args=args) if attr in LOOKS_INTO_A_NAME:
            found = [text for argument in args for text in texts_in(argument)]
            return bool(found) and (is_probed(subject) or any(FAMILIES.match(text) for text in found))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
            return any(map(is_probed, node.args))
        case ast.Compare():
            sides = [node.left, *node.comparators]
            return any(map(is_probed, sides)) and any(text for side in sides for text in texts_in(side))
        case ast.Match(subject=subject, cases=cases):
            return is_probed(subject) and any(texts_in(case.pattern) for case in cases)
    return False


def test_what_a_model_can_do_is_read_from_its_card() -> None:
    wrong = [
        f"{dotted_name(path)}: {ast.unparse(node).splitlines()[0]}"
        for path in modules()
        if room_of(dotted_name(path)) not in ("engines", "catalogue")
        for node in ast.walk(tree_of(path))
        if is_a_probe(node)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ('model.startswith("gpt-")', True),
        ('call.model.lower().startswith(("gpt-", "o1"))', True),
        ('name.startswith("whisper")', True),
        ('"realtime" in wish.model', True),
        ('model == "voice"', True),
        ('card.name in {"voice", "tts-1"}', True),
        ('re.match("gpt", model)', True),
        ('hasattr(provider, "relay_offer")', True),
        ('getattr(engine, "languages", ())', True),
        ('match model:\n    case "voice":\n        pass', True),
        ('path.startswith("/api/")', False),
        ('card.kind == "chat"', False),
        ("model == other", False),
        ("if not model:\n    pass", False),
    ],
)
def test_probes_are_found_however_they_are_written(code: str, is_found: bool) -> None:
    assert any(map(is_a_probe, ast.walk(ast.parse(code)))) is is_found
