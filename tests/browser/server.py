"""The product as a process of its own: `manage.py serve` on a free port, with its own database."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from tests.ports import free_port
from tests.prepared import LIGHT_VOICE, collect_static_files, environment_of, prepare
from tests.serving import ServerProcess, manage

WRITTEN_S = 25


class Server(ServerProcess):
    """A running server; `port` is where it listens on 127.0.0.1, each time that it is started."""

    def __init__(self, place: Path, *, ready: bool = True, **environment: str) -> None:
        """Start and wait: until a conversation can begin, or (`ready=False`) until it answers at all."""
        prepare(place)
        self._place = place
        self._is_ready = ready
        if not ready and "MODELS_DIR" not in environment:  # the index takes a while to make: there is something to see
            shutil.rmtree(place / "retrieval", ignore_errors=True)
            (place / "models").mkdir()
            for model in Path(settings.MODELS_DIR).iterdir():
                if model.name != "retrieval":
                    (place / "models" / model.name).symlink_to(model)
            environment["MODELS_DIR"] = str(place / "models")
        variables = environment_of(place) | LIGHT_VOICE | environment
        if environment.get("DEBUG") == "0":
            collect_static_files(Path(environment["STATIC_ROOT"]))
        super().__init__(variables, port=free_port())

    def start(self, *, ready: bool | None = None) -> None:
        """Start it, again after a crash, on the same port; `ready` is what it waits for, if not as before."""
        super().start()
        if self._is_ready if ready is None else ready:
            self.wait_until_ready()
        else:
            self.wait_until_answering()

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with contextlib.closing(sqlite3.connect(self._place / "voiceapp.sqlite3")) as database:
            return database.execute(query).fetchall()

    def execute(self, statement: str, *values: object) -> None:
        """Change its database behind its back, as another process of the installation does."""
        with contextlib.closing(sqlite3.connect(self._place / "voiceapp.sqlite3", timeout=20)) as database, database:
            database.execute(statement, values)

    def row(self, query: str) -> tuple[object, ...]:
        """The one row of a query, once there is one: the books are written beside the conversation."""
        deadline = time.monotonic() + WRITTEN_S
        pause = threading.Event()
        while not (found := self.rows(query)) and time.monotonic() < deadline:
            pause.wait(0.05)
        (row,) = found
        return row

    def manage(self, *command: str, **environment: str) -> str:
        """Run a management command of this installation, and return what it said."""
        status, log = manage(*command, "--verbosity", "0", environment=self.environment | environment)
        assert status == 0, log
        return log

    def new_key(self, account: str) -> str:
        return self.manage("createkey", "--account", account).split()[-1]


@contextlib.contextmanager
def running(place: Path, *, ready: bool = True, **environment: str) -> Iterator[Server]:
    """A server for the time of a `with` block."""
    server = Server(place, ready=ready, **environment)
    try:
        yield server
    finally:
        server.stop()
