"""Room on the disk for work in progress, given back even when a worker was killed in the middle of it."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings

LOCK = "in-use"
"""A file that its process holds a lock on; the system lets go of it however the process ends."""
UNLOCKED = "."
"""Prefix of a folder's name until its lock is held."""


class Scratch:
    """Folders of one process, below a folder of its own."""

    def __init__(self) -> None:
        self._lock: IO[bytes] | None = None
        self._root = Path()

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """An empty folder until the end of the block."""
        if self._lock is None:
            self._open()
        with tempfile.TemporaryDirectory(dir=self._root, ignore_cleanup_errors=True) as name:
            yield Path(name)

    def close(self) -> None:
        if self._lock is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._lock.close()
            self._lock = None

    def _open(self) -> None:
        home = Path(settings.VAR_DIR, "work")
        home.mkdir(parents=True, exist_ok=True)
        for left in home.iterdir():
            if not left.name.startswith(UNLOCKED):
                _remove_if_left(left)
        made = Path(tempfile.mkdtemp(prefix=UNLOCKED, dir=home))
        self._lock = (made / LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._root = made.rename(home / made.name.removeprefix(UNLOCKED))


def _remove_if_left(folder: Path) -> None:
    """Remove what a process left behind that is no more."""
    try:
        with (folder / LOCK).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except (FileNotFoundError, BlockingIOError):  # another process has just removed it; or it is in use
        pass
