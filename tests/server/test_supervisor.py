"""A server that systemd started tells when it is ready, that it is alive, and that it stops."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.serving import PATIENCE_S, manage

from .process import environment_in, served
from .test_readiness import place_models


@pytest.mark.parametrize(("is_abstract", "meant_for"), [(False, None), (True, "1")])
def test_it_tells_its_supervisor(tmp_path: Path, is_abstract: bool, meant_for: str | None) -> None:
    """The watchdog of another process is not fed."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        address = f"@{uuid4()}" if is_abstract else f"{folder}/notify"
        heard.bind(address.replace("@", "\0"))
        heard.settimeout(PATIENCE_S)
        watchdog: dict[str, Any] = {"WATCHDOG_USEC": "300000"} | ({"WATCHDOG_PID": meant_for} if meant_for else {})
        with served(tmp_path, NOTIFY_SOCKET=address, **watchdog) as server:
            notice = heard.recv(4096).decode()
            assert notice.startswith("STATUS=Not ready: ")
            assert "python manage.py fetch_models" in notice
            place_models(tmp_path / "models")
            assert manage("migrate", "--noinput", "-v0", environment=environment_in(tmp_path))[0] == 0
            while (notice := heard.recv(4096).decode()).startswith("STATUS=Not ready: "):
                pass
            assert notice == f"READY=1\nSTATUS=Serving on {server.origin}"
            assert server.request("GET", "/readyz")[:2] == (200, {"status": "ready"})
            if not meant_for:
                assert [heard.recv(4096), heard.recv(4096)] == [b"WATCHDOG=1"] * 2
            server.signal()
            while (last := heard.recv(4096)) == b"WATCHDOG=1":
                assert not meant_for
            assert last == b"STOPPING=1"
            assert server.wait() == 0
