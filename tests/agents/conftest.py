"""Servers with agents, applied from files as operators do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.realtime.conftest import chat_server as chat_server
from tests.realtime.conftest import home as home
from tests.realtime.conftest import serve as serve
from tests.realtime.product import Product
from tests.serving import manage

Apply = Callable[..., tuple[int, str]]


@pytest.fixture
def apply(tmp_path: Path) -> Apply:
    """Publish agents at a running server, `apply(product, reception="first_words = 'Hello.'")`: see `manage`."""

    def run(product: Product, **files: str) -> tuple[int, str]:
        for name, text in files.items():
            (tmp_path / f"{name}.toml").write_text(text)
        return manage("agents", "apply", str(tmp_path), environment=product.environment)

    return run
