"""The page's arithmetic, run by bare JavaScript: `modules/*.test.mjs` beside this file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

MODULES = sorted(Path(__file__).with_name("modules").glob("*.test.mjs"))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name.removesuffix(".test.mjs"))
def test_the_module_keeps_its_promises(module: Path) -> None:
    node = shutil.which("node")
    assert node is not None, "These tests need node (https://nodejs.org) on the path."
    run = subprocess.run([node, "--test", str(module)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
