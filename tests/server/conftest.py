"""One server of each kind for the tests that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .process import Served, served


@pytest.fixture(scope="session", params=["daphne", "uvicorn"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The small application, with deadlines short enough to wait for."""
    folder = tmp_path_factory.mktemp("served")
    with served(
        request.param,
        folder,
        HEADER_TIMEOUT_S="2",
        BODY_TIMEOUT_S="2",
        MAX_BODY_BYTES="200000",
        MAX_UPLOAD_BYTES="400000",
        MAX_MESSAGE_BYTES="950000",
        MAX_CONNECTIONS_PER_ADDRESS="60",
    ) as process:
        yield process


@pytest.fixture(params=["daphne", "uvicorn"])
def server_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
