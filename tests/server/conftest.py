"""One server for the tests that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.realtime.conftest import home, serve

from .process import Served, served

__all__ = ["home", "serve"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The small application, with deadlines short enough to wait for."""
    folder = tmp_path_factory.mktemp("served")
    with served(
        folder,
        HEADER_TIMEOUT_S="2",
        BODY_TIMEOUT_S="2",
        MAX_BODY_BYTES="200000",
        MAX_UPLOAD_BYTES="400000",
        MAX_MESSAGE_BYTES="950000",
        MAX_CONNECTIONS_PER_ADDRESS="60",
    ) as process:
        yield process
