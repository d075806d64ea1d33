"""The HTTP operations of OpenAI's library in the families that this server has, and whether each is served here."""

from __future__ import annotations

import re
from pathlib import Path

import openai

from tests.serving import ROOT
from voiceapp.api import openapi_document

TABLE = ROOT / "docs" / "contracts" / "openai-operations.md"
HEAD = """# OpenAI's operations

The HTTP operations that the `openai` library for Python calls, of the families that this server has, and whether they
are served here.

| Operation | Here |
|---|---|
"""
FAMILIES = ("audio", "chat", "embeddings", "models", "realtime", "responses")
CALL = re.compile(r'self\._(get|post|delete|get_api_list)\(\s*(?:path_template\(\s*)?f?"(/[^"]*)"')


def table() -> str:
    """The whole file."""
    sources = (Path(openai.__file__).parent / "resources").rglob("*.py")
    found = {
        (path, method.partition("_")[0].upper()) for each in sources for method, path in CALL.findall(each.read_text())
    }
    served = {
        (anonymous(path), method.upper()) for path, methods in openapi_document()["paths"].items() for method in methods
    }
    rows = sorted({(anonymous(path), method) for path, method in found if path.split("/")[1] in FAMILIES})
    return HEAD + "".join(f"| `{method} {path}` | {_here((path, method) in served)} |\n" for path, method in rows)


def _here(is_served: bool) -> str:
    return "served" if is_served else "not served"


def anonymous(path: str) -> str:
    """A path below the root, whatever its parameters are called."""
    return re.sub(r"\{[^}]*\}", "{…}", path.removeprefix("/compatible-mode/v1").partition("?")[0])
