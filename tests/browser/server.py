"""The product as a process of its own: `manage.py serve` on a free port, with its own database."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from tests.ports import free_port
from tests.prepared import prepare

START_S = 90
WRITTEN_S = 25


class Server:
    """A running server; `port` is where it listens on 127.0.0.1, `log` what it wrote so far."""

    def __init__(self, place: Path, **environment: str) -> None:
        self.port = free_port()
        prepare(place)
        self.log_path = place / "server.log"
        self._place = place
        self._environment = {
            **os.environ,
            "DEBUG": "1",
            "VAR_DIR": str(place),
            "MODELS_DIR": str(settings.MODELS_DIR),
            "DATABASE_URL": f"sqlite:///{place / 'voiceapp.sqlite3'}",
            "DJANGO_SETTINGS_MODULE": "voiceapp.settings",
            **environment,
        }

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """What its database says."""
        with contextlib.closing(sqlite3.connect(self._place / "voiceapp.sqlite3")) as database:
            return database.execute(query).fetchall()

    def row(self, query: str) -> tuple[object, ...]:
        """The one row of a query, once there is one: the books are written beside the conversation."""
        deadline = time.monotonic() + WRITTEN_S
        pause = threading.Event()
        while not (found := self.rows(query)) and time.monotonic() < deadline:
            pause.wait(0.05)
        (row,) = found
        return row

    def manage(self, *command: str, **environment: str) -> None:
        """Run a management command of this installation."""
        subprocess.run(
            [sys.executable, "manage.py", *command, "--verbosity", "0"],
            cwd=settings.BASE_DIR,
            env={**self._environment, **environment},
            check=True,
            timeout=START_S,
        )

    def start(self, *, ready: bool = True) -> None:
        """Start and wait: until a conversation can begin, or (`ready=False`) until it answers at all."""
        with self.log_path.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", "serve", "--port", str(self.port)],
                cwd=settings.BASE_DIR,
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_S
        pause = threading.Event()
        while True:
            status, body = self._readiness()
            if status == 200 or (status and not ready):
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"The server is not ready: {body}\n{self.log}")
            pause.wait(0.1)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)

    def kill(self) -> None:
        """End it without a word, as a crash does; `start` brings it back on the same port."""
        self._process.kill()
        self._process.wait(5)

    def _readiness(self) -> tuple[int, object]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                return answer.status, None
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)
        except OSError as error:
            return 0, error


@contextlib.contextmanager
def running(place: Path, *, ready: bool = True, **environment: str) -> Iterator[Server]:
    """A server for the time of a `with` block."""
    server = Server(place, **environment)
    if not ready:  # what there is to see while it loads takes a while to make
        shutil.rmtree(place / "retrieval")
    if environment.get("DEBUG") == "0":
        server.manage("collectstatic", "--noinput")
    server.start(ready=ready)
    try:
        yield server
    finally:
        server.stop()
