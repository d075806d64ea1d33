"""The catalogues of the pages' languages: what they must hold, and how they are compiled without gettext's programs.

`python -m tests.pages.catalogues` adds to every catalogue what the pages say now, takes away what they no longer say,
and compiles it. A sentence without a translation fails a test.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import polib

ROOT = Path(__file__).parents[2]
LOCALES = ROOT / "voiceapp" / "pages" / "locale"
JAVASCRIPT_CALL = re.compile(r'\b(?:t|marked)\(\s*("(?:[^"\\]|\\.)*")')
TRANSLATE = re.compile(r"""\{%\s*translate\s+(["'])(.*?)\1(?:\s+as\s+\w+)?\s*%\}|_\(\"(.*?)\"\)""")
BLOCK = re.compile(
    r"\{%\s*blocktranslate\b([^%]*)%\}(.*?)(?:\{%\s*plural\s*%\}(.*?))?\{%\s*endblocktranslate\s*%\}", re.DOTALL
)
CALLED = ("_", "gettext", "ngettext")

Message = tuple[str, str]
"""A text in English, and its plural or nothing."""


def page_messages() -> set[Message]:
    found = set[Message]()
    for template in pages():
        source = template.read_text()
        found |= {(words or called, "") for _, words, called in TRANSLATE.findall(source)}
        found |= {(_block(one, options), _block(more, options)) for options, one, more in BLOCK.findall(source)}
    for module in (ROOT / "voiceapp" / "pages").glob("*.py"):
        for call in ast.walk(ast.parse(module.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in CALLED:
                texts = [part.value for part in call.args if isinstance(part, ast.Constant)]
                found.add((str(texts[0]), str(texts[1]) if call.func.id == "ngettext" else ""))
    return found


def pages() -> Iterator[Path]:
    """The templates that visitors see."""
    templates = ROOT / "templates"
    yield from templates.glob("*.html")
    for room in ("voice", "registration"):
        yield from (templates / room).glob("*.html")


def module_messages() -> set[Message]:
    modules = (path for path in (ROOT / "static").rglob("*.js") if "vendor" not in path.parts)
    return {(json.loads(words), "") for module in modules for words in JAVASCRIPT_CALL.findall(module.read_text())}


def _block(words: str, options: str) -> str:
    if "trimmed" in options:
        words = " ".join(line.strip() for line in words.strip().splitlines())
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", r"%(\1)s", words)


DOMAINS = {"django": page_messages, "djangojs": module_messages}


def catalogues() -> Iterator[tuple[Path, set[Message]]]:
    for name, messages in DOMAINS.items():
        wanted = messages()
        for place in sorted(LOCALES.iterdir()):
            yield place / "LC_MESSAGES" / f"{name}.po", wanted


def update() -> int:
    """Bring every catalogue up to date; return how many sentences lack a translation."""
    missing = 0
    for path, wanted in catalogues():
        catalogue = polib.pofile(str(path), wrapwidth=0)
        known = {(entry.msgid, entry.msgid_plural): entry for entry in catalogue}
        catalogue[:] = [
            known.get(message) or polib.POEntry(msgid=message[0], msgid_plural=message[1]) for message in sorted(wanted)
        ]
        catalogue.save(str(path))
        catalogue.save_as_mofile(str(path.with_suffix(".mo")))
        for entry in catalogue.untranslated_entries():
            print(f"{path.relative_to(LOCALES)}: no translation of {entry.msgid!r}")
            missing += 1
    return missing


if __name__ == "__main__":
    sys.exit(update() > 0)
