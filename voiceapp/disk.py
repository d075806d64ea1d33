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

    def __init__(self) -> None:
        super().__init__("The server has too little disk space left for this. Try again later.")


@dataclass(frozen=True, slots=True)
class Shortage:
    """Too little is free."""

    place: str
    """Purpose of the folder, for operators."""
    free_bytes: int
    wanted_bytes: int

    def __str__(self) -> str:
        return (
            f"Only {size(self.free_bytes)} of disk space are left for {self.place}, less than "
            f"{size(self.wanted_bytes)} (DISK_RESERVE_BYTES): make room."
        )


class Disks:
    """Free space in the folders that this installation writes to."""

    def __init__(
        self,
        places: Mapping[str, Path],
        *,
        free_bytes: Callable[[Path], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`places` are folders by what is kept in them."""
        self._places = places
        self._free_bytes = free_bytes or free_bytes_of
        self._clock = clock
        self._guard = threading.Lock()
        self._free: list[tuple[int, str]] = []
        self._looked_at = -FRESH_S

    def shortage(self, *, share: float = 1.0, wanted_bytes: int = 0) -> Shortage | None:
        """Return the folder with less free than that share of the reserve and `wanted_bytes`; None without one."""
        reserve: int = settings.DISK_RESERVE_BYTES
        if not reserve:
            return None
        least = int(reserve * share) + wanted_bytes
        free, place = min(self._look(), default=(least, ""))
        return Shortage(place, free, least) if free < least else None

    def require_room(self) -> None:
        """For what is new, and will write files or many rows.

        Raises:
            DiskFull: if less is free than the reserve.
        """
        if self.shortage():
            raise DiskFull

    def require_room_in_progress(self, wanted_bytes: int = 0) -> None:
        """For work that has begun, before it writes so much more.

        Raises:
            DiskFull: if it would leave less than half of the reserve.
        """
        if self.shortage(share=FOR_WORK_IN_PROGRESS, wanted_bytes=wanted_bytes):
            raise DiskFull

    def _look(self) -> list[tuple[int, str]]:
        now = self._clock()
        with self._guard:
            if now - self._looked_at >= FRESH_S:
                self._free = [(self._free_bytes(folder), place) for place, folder in self._places.items()]
                self._looked_at = now
            return self._free


def free_bytes_of(folder: Path) -> int:
    """Return the bytes that an unprivileged process may still write in a folder, which need not exist yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def is_full(error: BaseException) -> bool:
    """Return whether writing failed because the disk is full."""
    return isinstance(error, OSError) and error.errno in FULL


@functools.cache
def disks() -> Disks:
    """Those of this installation, by the settings."""
    places = {"VAR_DIR": Path(settings.VAR_DIR)}
    database = settings.DATABASES["default"]
    if database["ENGINE"] == SQLITE:
        places["the database"] = Path(database["NAME"]).absolute().parent
    location = settings.STORAGES["tasks"].get("OPTIONS", {}).get("location")
    if location and not settings.TASK_STORAGE:
        places["files of tasks"] = Path(location)
    return Disks(places)
