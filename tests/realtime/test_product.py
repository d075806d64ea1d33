"""What starts servers for tests leaves none behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import serving
from tests.realtime.product import Home, Product


def test_a_server_that_does_not_get_ready_is_not_left_behind(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Product(home, tmp_path / "served")
    server.stop()
    monkeypatch.setattr(serving, "START_S", 0)
    with pytest.raises(AssertionError):
        server.start()
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)
