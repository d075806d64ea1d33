"""Room on the disks that this installation writes to, looked at once a second at most.

Below DISK_RESERVE_BYTES nothing new is begun: the rest is for what runs already, above all for the rows of open
conversations. What runs and writes files itself stops at half of it.
"""

from __future__ import annotations

import errno
import functools
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from django.conf import settings

from voiceapp.errors import VoiceError
from voiceapp.formats import size

FRESH_S = 1.0
SQLITE = "voiceapp.database.sqlite3"
FOR_WORK_IN_PROGRESS = 0.5
"""Share of the reserve that running work leaves untouched."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""No space, none left of a user's quota, or a file larger than the process may write (`ulimit -f`)."""


class DiskFull(VoiceError):
    """There is no room for what was asked for; there may be later."""

    code = "ServiceUnavailable"
    http_status = 503
    retry_after_s = 60

    def __init__(self, message: str = "The server has too little disk space.") -> None:
        super().__init__(f"{message} Try again later.")


@dataclass(frozen=True, slots=True)
class Shortage:
    code: ClassVar[str] = "disk_full"
    message: ClassVar[str] = "The server has too little disk space."
    place: str
    """Purpose of the folder, for operators."""
    free_bytes: int
    wanted_bytes: int

    def __str__(self) -> str:
        return (
            f"Only {size(self.free_bytes)} of disk space are left for {self.place}, less than "
            f"{size(self.wanted_bytes)} (DISK_RESERVE_BYTES): make room."
        )


@dataclass(frozen=True, slots=True)
class Unwritable:
    code: ClassVar[str] = "storage_read_only"
    message: ClassVar[str] = "The server cannot write its files."
    place: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.folder} cannot be written, the folder of {self.place}: let the user of this process write there."


class Disks:
    def __init__(
        self,
        places: Mapping[str, Path],
        *,
        free_bytes: Callable[[Path], int] | None = None,
        is_writable: Callable[[Path], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`places` are folders by what is kept in them."""
        self._places = places
        self._free_bytes = free_bytes or free_bytes_of
        self._is_writable = is_writable or is_writable_folder
        self._clock = clock
        self._guard = threading.Lock()
        self._free: list[tuple[int, str]] = []
        self._unwritable: Unwritable | None = None
        self._looked_at = -FRESH_S

    def shortage(self, *, share: float = 1.0, wanted_bytes: int = 0) -> Shortage | Unwritable | None:
        """Return a folder that cannot be written, or with less free than that share of the reserve and more."""
        self._look()
        reserve: int = settings.DISK_RESERVE_BYTES
        if self._unwritable or not reserve:
            return self._unwritable
        least = int(reserve * share) + wanted_bytes
        free, place = min(self._free, default=(least, ""))
        return Shortage(place, free, least) if free < least else None

    def require_room(self) -> None:
        """Check the room for new work, which will write files or many rows.

        Raises:
            DiskFull: if less is free than the reserve, or a folder cannot be written.
        """
        if shortage := self.shortage():
            raise DiskFull(shortage.message)

    def require_room_in_progress(self, wanted_bytes: int = 0) -> None:
        """Check the room for work that has begun, before it writes so much more.

        Raises:
            DiskFull: if it would leave less than half of the reserve.
        """
        if shortage := self.shortage(share=FOR_WORK_IN_PROGRESS, wanted_bytes=wanted_bytes):
            raise DiskFull(shortage.message)

    def _look(self) -> None:
        now = self._clock()
        with self._guard:
            if now - self._looked_at >= FRESH_S:
                self._free = [(self._free_bytes(folder), place) for place, folder in self._places.items()]
                unwritable = (Unwritable(*found) for found in self._places.items() if not self._is_writable(found[1]))
                self._unwritable = next(unwritable, None)
                self._looked_at = now


def free_bytes_of(folder: Path) -> int:
    """Return the bytes that an unprivileged process may still write in a folder, which need not exist yet."""
    found = os.statvfs(_existing(folder))
    return found.f_bavail * found.f_frsize


def is_writable_folder(folder: Path) -> bool:
    """Return whether this process can make files in a folder, or the folder itself where it does not exist yet."""
    found = _existing(folder)
    return found.is_dir() and os.access(found, os.W_OK | os.X_OK)


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in FULL


@functools.cache
def disks() -> Disks:
    places = {"VAR_DIR": Path(settings.VAR_DIR)}
    database = settings.DATABASES["default"]
    if database["ENGINE"] == SQLITE:
        places["the database"] = Path(database["NAME"]).absolute().parent
    location = settings.STORAGES["tasks"].get("OPTIONS", {}).get("location")
    if location and not settings.TASK_STORAGE:
        places["files of tasks"] = Path(location)
    return Disks(places)
