"""The examples of README and manual: settings and commands exist, and every block can be read as what it is."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from tests.serving import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "manual").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SETTING = re.compile(r"\b(?!UPSTREAM_ACME_|OTEL_|Q4_K_M)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
KNOWN = set(re.findall(r"^#?([A-Z_0-9]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "sh": partial(shlex.split, comments=True),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    assert set(SETTING.findall(text)) - KNOWN == set()
    for language, block in BLOCK.findall(text):
        READERS.get(language, str)(block)
    for line in re.findall(r"manage\.py ([^`\n&]+)", text):
        name, *arguments = shlex.split(line.partition(">")[0])
        application = get_commands()[name]
        command = application if not isinstance(application, str) else load_command_class(application, name)
        if arguments:
            command.create_parser("manage.py", name).parse_args(arguments)
