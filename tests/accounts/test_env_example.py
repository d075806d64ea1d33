"""`.env.example` names what the settings read, no more and no less, with the defaults that hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LINE = re.compile(r"^#?([A-Z][A-Z0-9_]*)=(.*)$", re.MULTILINE)


def read_by_settings() -> dict[str, ast.expr]:
    """Variable → the expression of its default outside development, for every `env.type("NAME", default=…)`."""
    found: dict[str, ast.expr] = {}
    modules = [ast.parse(path.read_text()) for path in (ROOT / "voiceapp" / "settings").glob("*.py")]
    for call in (node for module in modules for node in ast.walk(module)):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "env"
        ):
            named = call.args[0]
            if isinstance(named, ast.Call):  # of each service: the unnamed one stands for all
                name = f"UPSTREAM_{ast.literal_eval(named.args[0])}"
            else:
                name = ast.literal_eval(named)
            (default,) = [keyword.value for keyword in call.keywords if keyword.arg == "default"]
            if isinstance(default, ast.IfExp) and ast.unparse(default.test) == "DEBUG":
                default = default.orelse
            found[name] = default
    return found


def documented() -> dict[str, str]:
    return dict(LINE.findall((ROOT / ".env.example").read_text()))


def spelled(default: ast.expr) -> str | None:
    """How a constant default is written in an environment; None when it is worked out from something else."""
    parts = {type(node) for node in ast.walk(default)}
    if not parts <= {ast.Constant, ast.BinOp, ast.Mult, ast.List, ast.Load}:
        return None
    value = eval(ast.unparse(default))  # constants and products of them only
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, bool | float):
        return str(int(value)) if value == int(value) else str(value)
    return str(value)


def test_it_finds_the_variables_of_the_settings() -> None:
    assert {"DEBUG", "DATABASE_URL", "PORT", "VAR_DIR", "LOG_LEVEL"} <= set(read_by_settings())


def test_it_names_every_variable_once() -> None:
    lines = LINE.findall((ROOT / ".env.example").read_text())
    assert sorted(name for name, _ in lines) == sorted(read_by_settings())


@pytest.mark.parametrize(
    ("name", "default"),
    [(name, text) for name, node in read_by_settings().items() if (text := spelled(node)) is not None],
)
def test_it_states_the_default(name: str, default: str) -> None:
    assert documented()[name] == default


def test_it_changes_nothing_when_copied_as_it_is() -> None:
    uncommented = [line for line in (ROOT / ".env.example").read_text().splitlines() if line and line[0] != "#"]
    assert uncommented == []
