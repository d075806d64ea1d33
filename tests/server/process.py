"""The server with a small application in place of the product: ask it, and look at its connections."""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from websockets.sync.client import ClientConnection, connect

from tests.serving import PATIENCE_S, ServerProcess


class Served(ServerProcess):
    """The small application, listening."""

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **options: Any
    ) -> tuple[int, dict[str, Any], http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body=body, headers=headers or {}, **options)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"{}"), response.headers
        finally:
            connection.close()

    def logged(self) -> str:
        """Its log up to now: a last request of ours marks where now is, for the log comes through a pipe and late."""
        mark = f"/until-here-{uuid4().hex}"
        self.request("GET", mark)
        self.wait_until_logged(mark)
        return self.log

    def wait_until_warm(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while "warming_up" in (self.reasons() or ()):
            assert time.monotonic() < deadline, "it never gets warm"

    def socket_of(self, peer: socket.socket) -> str:
        ends = f":{self.port:04X}", f":{peer.getsockname()[1]:04X}"
        for line in Path("/proc/net/tcp").read_text().splitlines():
            fields = line.split()
            if fields[1].endswith(ends[0]) and fields[2].endswith(ends[1]):
                return fields[9]
        raise AssertionError("it has no such connection")

    def wait_until_closed(self, inodes: Collection[str]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while left := self.sockets & set(inodes):
            assert time.monotonic() < deadline, f"{len(left)} connections stay open:\n{self.log}"
            time.sleep(0.05)

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def open(self, path: str, **options: Any) -> ClientConnection:
        return connect(f"ws://127.0.0.1:{self.port}{path}", **{"open_timeout": PATIENCE_S, **options})


@contextmanager
def served(folder: Path, *, is_fresh: bool = False, **environment: str) -> Iterator[Served]:
    """The small application, with a folder for its database and models, until the block ends."""
    process = Served(environment_in(folder, **environment), is_fresh=is_fresh)
    try:
        yield process
    finally:
        process.kill()


def environment_in(folder: Path, **environment: str) -> dict[str, str]:
    """Variables that keep a process inside `folder`."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    return kept | {
        "DEBUG": "1",
        "DJANGO_SETTINGS_MODULE": "tests.server.settings",
        "VAR_DIR": str(folder),
        "DATABASE_URL": f"sqlite:///{folder / 'test.sqlite3'}",
        "MODELS_DIR": str(folder / "models"),
        **environment,
    }
