"""SQLite: a writer waits for the one before it; `busy_timeout` says how long."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base

from voiceapp.database.patience import current, waiting

STEP_MS = 100
"""A time-out that is nearly right stays, so that most statements need no second one to set it."""


class Cursor(base.SQLiteCursorWrapper):
    """Takes what its statements take from the patience of the request at hand."""

    def execute(self, query: str, params: Sequence[Any] | None = None) -> Any:
        with waiting():
            return super().execute(query, params)

    def executemany(self, query: str, param_list: Iterable[Sequence[Any]]) -> Any:
        with waiting():
            return super().executemany(query, param_list)


class DatabaseWrapper(base.DatabaseWrapper):
    _patience_ms: int
    """Present value of `busy_timeout`."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if not self.is_in_memory_db():
            _keep_private(Path(conn_params["database"]))
        made = super().get_new_connection(conn_params)
        self._patience_ms = self._usual_ms
        return made

    def create_cursor(self, name: str | None = None) -> Any:
        if not self.in_atomic_block:  # a transaction has its lock from its beginning on (IMMEDIATE)
            self._wait_as_long_as_allowed()
        return self.connection.cursor(factory=Cursor)

    @property
    def _usual_ms(self) -> int:
        timeout_s: float = self.settings_dict["OPTIONS"].get("timeout", 5.0)
        return round(1000 * timeout_s)

    def _wait_as_long_as_allowed(self) -> None:
        patience = current()
        left_s = None if patience is None else patience.left_s
        wanted_ms = self._usual_ms if left_s is None else min(self._usual_ms, round(1000 * left_s))
        if wanted_ms != self._patience_ms and (abs(wanted_ms - self._patience_ms) >= STEP_MS or not wanted_ms):
            self.connection.execute(f"PRAGMA busy_timeout = {wanted_ms}")
            self._patience_ms = wanted_ms


def _keep_private(file: Path) -> None:
    """Make the file unreadable for other users; the files that SQLite makes beside it get its permissions."""
    with suppress(OSError):  # connecting says what is wrong
        if not file.exists():
            os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
        elif (mode := file.stat().st_mode) & stat.S_IRWXO:
            private = 0o660 if mode & stat.S_IWGRP else 0o600  # a group that writes shares the installation
            for name in ("", "-wal", "-shm"):
                file.with_name(file.name + name).chmod(private)
