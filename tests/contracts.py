"""`python -m tests.contracts`: how docs/contracts would change with the client libraries that are installed, as a diff.

`make contracts` shows it for the newest releases. With `--write`, the tables are written anew: read the difference
first, and let the server follow it.
"""

from __future__ import annotations

import difflib
import sys
from importlib import import_module, metadata

import django

MODULES = (
    "tests.protocol.openai_realtime.contract",
    "tests.protocol.dashscope_realtime.contract",
    "tests.contract.openai_operations",
)


def main() -> None:
    django.setup()
    print(*(f"{name} {metadata.version(name)}" for name in ("openai", "dashscope")), sep=", ")
    for name in MODULES:
        module = import_module(name)
        told = module.table()
        before = module.TABLE.read_text(encoding="utf-8") if module.TABLE.exists() else ""
        for line in difflib.unified_diff(
            before.splitlines(), told.splitlines(), module.TABLE.name, "now", n=0, lineterm=""
        ):
            print(line)
        if "--write" in sys.argv:
            module.TABLE.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
