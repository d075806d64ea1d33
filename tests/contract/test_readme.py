"""The examples of the README, run as they are printed against a real server: each prints what it says it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.realtime.conftest import Serve
from tests.realtime.product import Product

README = Path(settings.BASE_DIR, "README.md")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"# prints: (.+)$", re.MULTILINE)
PATIENCE_S = 90


def blocks(language: str) -> list[str]:
    return [code for found, code in BLOCK.findall(README.read_text()) if found == language]


def commands() -> list[str]:
    """The shell commands of the README, continuation lines joined."""
    lines = "".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip()]


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(RTC_ALLOW_PRIVATE="1")


def addressed(example: str, product: Product) -> str:
    """The example with the address and the key of this server, as a reader would write them in."""
    assert "sk-…" in example
    assert "localhost:8000" in example
    return example.replace("localhost:8000", product.address).replace("sk-…", product.keys["good"])


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_a_program_prints_what_it_promises(product: Product, tmp_path: Path, number: int) -> None:
    example = blocks("python")[number]
    promised = PROMISE.findall(example)
    program = tmp_path / "example.py"
    program.write_text(addressed(example, product))

    done = subprocess.run(
        [sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S
    )

    assert done.returncode == 0, done.stderr
    assert promised, "an example that prints nothing shows nothing"
    for words in promised:
        assert words in done.stdout
    sounds = re.findall(r'"(\w+\.(?:wav|mp3))"', example)
    assert sounds
    for name in sounds:
        assert (tmp_path / name).stat().st_size > 2_000, f"{name} holds no sound"


def test_every_library_of_the_examples_is_installed_by_a_command_before() -> None:
    (install,) = (line for line in commands() if line.startswith("pip install"))
    installed = set(install.removeprefix("pip install ").split())
    imported = set(re.findall(r"^(?:import|from) (\w+)", "".join(blocks("python")), re.MULTILINE))
    assert imported - sys.stdlib_module_names == installed
    assert README.read_text().index(install) < README.read_text().index("```python")


def test_what_make_is_asked_for_exists() -> None:
    targets = set(re.findall(r"\bmake ([a-z-]+)", README.read_text()))
    rules = set(re.findall(r"^([a-z-]+):", Path(settings.BASE_DIR, "Makefile").read_text(), re.MULTILINE))
    assert {"run", "test", "key"} <= targets <= rules


def test_links_lead_to_files_and_headings() -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(#[^)]+)?\)", README.read_text()):
        file, anchor = Path(settings.BASE_DIR, target[0]), target[1]
        assert file.exists(), target
        headings = {f"#{title.lower().replace(' ', '-')}" for title in re.findall(r"^#+ (.+)$", _text(file), re.M)}
        assert not anchor or anchor in headings, target


def _text(file: Path) -> str:
    return file.read_text() if file.suffix == ".md" else ""
