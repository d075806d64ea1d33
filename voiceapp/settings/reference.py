"""The reference of all settings, drawn from the sources of this package: `.env.example` and a page of the manual.

A setting's meaning is the docstring below the statement that reads it, or the comment above, within a call.
`python -m voiceapp.settings.reference > .env.example` writes the file.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

MODULES = ("installation", "models", "limits", "upstream", "work")
MOST = ["SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "TRUST_PROXY", "PUBLIC_PAGE"]
MOST += ["CHAT_BASE_URL", "CHAT_API_KEY", "CHAT_MODEL"]
"""Settings that most installations set, and no others."""
KINDS = {"str": "text", "int": "whole number", "float": "number", "bool": "1 or 0", "list": "list", "dict": "pairs"}
OF_SERVERS = {
    "_API_KEY": "The key for that server, if it needs one.",
    "_MODEL": "That server's name for its model.",
    "_TIMEOUT_S": "Seconds to wait for that server.",
}
"""Meanings of settings without one, by the end of their names."""
HEADER = """\
Every setting, with its default on a machine of two cores. `make settings` writes this file from voiceapp/settings/.
Copy it to .env, readable by its owner only (install -m 600 .env.example .env), and take the # away from what you
change. A comment needs a line of its own: what follows a value on its line belongs to the value.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    kind: str
    default: str
    meaning: str
    section: str


def settings_of() -> list[Setting]:
    """All settings, in the order in which they are read."""
    folder = Path(__file__).parent
    known: dict[str, Any] = {"DEBUG": False, "BASE_DIR": Path(), "os": SimpleNamespace(cpu_count=lambda: 2)}
    return [found for name in MODULES for found in _of_module((folder / f"{name}.py").read_text(), known)]


def _of_module(source: str, known: dict[str, Any]) -> Iterator[Setting]:
    lines = source.splitlines()
    body = ast.parse(source).body
    for place, statement in enumerate(body):
        is_shared = isinstance(statement, ast.FunctionDef)  # it reads the settings of each service
        for call in _reads(statement) if is_shared else _reads(statement)[:1]:
            meaning = _comment(lines, call.lineno) if is_shared else _docstring(body[place + 1 :])
            headings = re.findall(r"^# ── (.+?) ─", "\n".join(lines[: call.lineno]), re.MULTILINE)
            named, default = call.args[0], call.keywords[-1].value
            own = f"UPSTREAM_{ast.literal_eval(named.args[0])}" if isinstance(named, ast.Call) else ""
            name = own or str(ast.literal_eval(named))
            value = known[name] if name == "DEBUG" else eval(ast.unparse(default), known)  # noqa: S307 - source of ours
            known[name] = Path(value) if name.endswith("_DIR") else value
            meaning = meaning or next((text for end, text in OF_SERVERS.items() if name.endswith(end)), "")
            yield Setting(name, KINDS[ast.unparse(call.func)[4:]], _spelled(value), meaning, headings[-1])


def _reads(statement: ast.stmt) -> list[ast.Call]:
    """The calls that read a setting, in the order of the source."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and node.keywords]
    found = [call for call in calls if ast.unparse(call.func).startswith("env.")]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _docstring(following: list[ast.stmt]) -> str:
    for statement in following:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return " ".join(str(statement.value.value).split())
        if _reads(statement):
            break
    return ""


def _comment(lines: list[str], line: int) -> str:
    above = takewhile(lambda text: text.startswith("# "), map(str.strip, reversed(lines[: line - 1])))
    return " ".join(reversed([text[2:] for text in above]))


def _spelled(value: Any) -> str:
    """A value as it is written in an environment."""
    match value:
        case bool():
            return str(int(value))
        case float():
            return f"{value:g}"
        case list() | dict():
            return ",".join(map(str, value))
    return str(value)


def env_example() -> str:
    """`.env.example`: every setting as a comment, which most installations set first."""
    found = {setting.name: setting for setting in settings_of()}
    sections = {"Most installations set only these": [found.pop(name) for name in MOST]}
    for setting in found.values():
        sections.setdefault(setting.section, []).append(setting)
    blocks = [_commented(HEADER)]
    for title, settings in sections.items():
        blocks += [f"\n# ── {title} ──\n", *(f"{_commented(s.meaning)}#{s.name}={s.default}\n" for s in settings)]
    return "".join(blocks)


def _commented(text: str) -> str:
    lines = textwrap.wrap(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)


def page() -> str:
    """The page of the manual, as Markdown."""
    parts = [
        "# Settings\n\nEvery setting is an environment variable, or a line of a file called .env in the folder of the "
        "source code. The default is that of a machine with two cores. Lists have commas between their entries, and "
        "pairs are written NAME=VALUE, with commas between.\n"
    ]
    section = ""
    for setting in settings_of():
        if setting.section != section:
            section = setting.section
            parts.append(f"\n## {section}\n\n| Name | Type | Default | Meaning |\n|---|---|---|---|\n")
        default = f"`{setting.default}`" if setting.default else ""
        meaning = re.sub(r"\w+://[^\s,;)]*[\w/]", r"`\g<0>`", setting.meaning).replace("|", "\\|")
        parts.append(f"| `{setting.name}` | {setting.kind} | {default} | {meaning} |\n")
    return "".join(parts)


if __name__ == "__main__":
    print(env_example(), end="")
