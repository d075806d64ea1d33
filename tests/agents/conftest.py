"""Servers with agents, applied from files as operators do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.realtime.conftest import chat_server as chat_server
from tests.realtime.conftest import home as home
from tests.realtime.conftest import serve as serve
from tests.realtime.product import Product

Apply = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def apply(tmp_path: Path) -> Apply:
    """Publish agents at a running server: `apply(product, reception="first_words = 'Hello.'")`."""

    def run(product: Product, **files: str) -> subprocess.CompletedProcess[str]:
        for name, text in files.items():
            (tmp_path / f"{name}.toml").write_text(text)
        command = [sys.executable, "manage.py", "agents", "apply", str(tmp_path)]
        return subprocess.run(command, env=product.environment, capture_output=True, text=True, timeout=60)

    return run
