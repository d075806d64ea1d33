"""The real command in a process of its own: start it, talk to it, stop it, read what it said."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from websockets.sync.client import ClientConnection, connect

ROOT = Path(__file__).resolve().parent.parent.parent
LISTENING = re.compile(r"Serving on http://127\.0\.0\.1:(\d+) ")
PATIENCE_S = 60.0
"""For what comes at once, unless the machine is busy."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As of all that a shell starts in the background; what we start would not hear us interrupt it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Process:
    """A running management command."""

    def __init__(self, *arguments: str, environment: Mapping[str, str]) -> None:
        self.log: list[str] = []
        self._longer = threading.Condition()
        self._popen = subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for(self, pattern: str | re.Pattern[str]) -> re.Match[str]:
        """Read the log up to a line that matches; the process ending first is a failure that shows what it said."""
        assert self._popen.stdout
        impatience = threading.Timer(PATIENCE_S, self._popen.kill)
        impatience.start()
        try:
            for line in self._popen.stdout:
                self.log.append(line)
                if found := re.search(pattern, line):
                    return found
        finally:
            impatience.cancel()
        raise AssertionError(f"{pattern} was never said:\n{self.text}")

    def read_on(self) -> None:
        """Keep reading, so that the process never waits for its log to be read."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._popen.stdout
        for line in self._popen.stdout:
            with self._longer:
                self.log.append(line)
                self._longer.notify_all()

    def wait_until_logged(self, part: str) -> None:
        """Until what `read_on` reads has had `part` in it."""
        with self._longer:
            assert self._longer.wait_for(lambda: part in self.text, PATIENCE_S), f"{part} was never said:\n{self.text}"

    @property
    def text(self) -> str:
        return "".join(self.log)

    def signal(self, number: int = signal.SIGTERM) -> None:
        self._popen.send_signal(number)

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """The exit code; everything it said is in the log."""
        code = self._popen.wait(timeout_s)
        if hasattr(self, "_reader"):
            self._reader.join(PATIENCE_S)
        else:
            self._read()
        return code

    def end(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()
        assert self._popen.stdout
        if not hasattr(self, "_reader"):
            self._popen.stdout.close()

    @property
    def memory_mb(self) -> float:
        """The most memory this process ever had."""
        status = Path(f"/proc/{self._popen.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found
        return int(found[1]) / 1024


class Served(Process):
    """`manage.py serve`, listening."""

    def __init__(self, server: str, environment: Mapping[str, str]) -> None:
        super().__init__("serve", "--port", "0", "--server", server, environment=environment)
        self.port = int(self.wait_for(LISTENING)[1])
        self.read_on()

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **options: Any
    ) -> tuple[int, dict[str, Any], http.client.HTTPMessage]:
        """Status, JSON and headers of one request on a connection of its own."""
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
        return self.text

    def reasons(self) -> list[str]:
        """Why it is not ready, as codes."""
        return [reason["code"] for reason in self.request("GET", "/readyz")[1].get("reasons", [])]

    def wait_until_warm(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while "warming_up" in self.reasons():
            assert time.monotonic() < deadline, "it never gets warm"

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def open(self, path: str, **options: Any) -> ClientConnection:
        return connect(f"ws://127.0.0.1:{self.port}{path}", **{"open_timeout": PATIENCE_S, **options})


@contextmanager
def served(server: str, folder: Path, **environment: str) -> Iterator[Served]:
    """The small application on `server`, with a folder for its database and models, until the block ends."""
    process = Served(server, environment_in(folder, **environment))
    try:
        yield process
    finally:
        process.end()


def environment_in(folder: Path, **environment: str) -> dict[str, str]:
    """Variables that keep a process inside `folder`."""
    return {
        "DEBUG": "1",
        "DJANGO_SETTINGS_MODULE": "tests.server.settings",
        "VAR_DIR": str(folder),
        "DATABASE_URL": f"sqlite:///{folder / 'test.sqlite3'}",
        "MODELS_DIR": str(folder / "models"),
        **environment,
    }
