"""Files of tasks, in Django's storage: a folder by default, a bucket by the setting `TASK_STORAGE`.

A link to one is signed and expires; its holder may fetch the file without a key, as with an object store.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin

from django.conf import settings
from django.core import signing
from django.core.files import File
from django.core.files.storage import Storage, storages
from django.db import transaction

from voiceapp.disk import disks
from voiceapp.errors import NotFound
from voiceapp.tasks.models import Task, TaskFile, Upload, not_forgotten
from voiceapp.tasks.storage import storage_use

logger = logging.getLogger(__name__)

T = TypeVar("T")

STORAGE = "tasks"
SALT = "voiceapp.tasks.storage.files"
THREADS = 8
PIECE_BYTES = 1024**2
MISSING = "The file is not there, or not there any more."
FAILING_S = 60.0
"""Time that one purge spends on files that cannot be deleted, as in a bucket that does not answer."""
GONE = "This link has expired, or its file is gone."


def storage() -> Storage:
    return storages[STORAGE]


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="storage")


async def at_the_storage(work: Callable[[], T]) -> T:
    """Run what talks to the storage on threads that do nothing else: a bucket may take its time."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), work)


def note(task: Task, path: Path, name: str, content_type: str) -> str:
    """Write down that a file will belong to a task, and under which name of its own it is to be stored.

    It comes first, so that whatever lies in the storage has a row by which it is found and deleted.

    Raises:
        Throttled: `Throttling.AllocationQuota`, if the account keeps as much as it may.
        DiskFull: if too little disk space is free for it.
    """
    own = f"tasks/{task.task_id}/{secrets.token_hex(4)}/{name}"
    size = path.stat().st_size
    disks().require_room_in_progress(size)  # the copy, beside what is there already
    with transaction.atomic():
        storage_use.take(task.account_id, "result_bytes", size)
        TaskFile.objects.create(task=task, name=own, content_type=content_type, size=size)
    return own


def put(path: Path, name: str) -> None:
    """Copy a file into the storage, under a name that nothing else has. Touches no row."""
    with path.open("rb") as source:
        storage().save(name, File(source))


def require(task: Task, name: str) -> str:
    """Return the name in the storage of a file that a task may read: one of its own, or an upload by its address.

    Raises:
        NotFound: if it is neither a file of this task nor an upload of its account.
    """
    if TaskFile.objects.filter(task=task, name=name).exists():
        return name
    upload = Upload.objects.filter(account_id=task.account_id, key=name.removeprefix("oss://")).first()
    if upload is None:
        raise NotFound(MISSING)
    return str(upload.name)


def get(name: str, folder: Path) -> Path:
    """Copy a file out of the storage, into a folder. Touches no row.

    Raises:
        NotFound: if it is gone.
        DiskFull: if too little disk space is free.
    """
    target = folder / Path(name).name
    with _open(name, MISSING) as source, target.open("wb") as sink:
        while piece := source.read(PIECE_BYTES):
            disks().require_room_in_progress(len(piece))
            sink.write(piece)
    return target


def opened(name: str, start: int) -> File:
    """A stored file, to be read from byte `start` on. Touches no row.

    Raises:
        NotFound: if it is gone.
    """
    source = _open(name, GONE)
    if start:
        source.seek(start)
    return source


def _open(name: str, missing: str) -> File:
    try:
        return storage().open(name, "rb")
    except FileNotFoundError:
        raise NotFound(missing) from None


def delete_all(tasks: list[int]) -> None:
    """Delete the files of these tasks; one that is gone already is no matter.

    Raises:
        OSError: if one cannot be deleted.
    """
    for name in TaskFile.objects.filter(task_id__in=tasks).values_list("name", flat=True):
        storage().delete(name)


class Deletions:
    """Deletions of one purge: a file that cannot be deleted keeps no other one, and the log says so in one line."""

    def __init__(self) -> None:
        self._failed = 0
        self._failing_s = 0.0
        self._first = ""

    def delete(self, name: str) -> bool:
        """Delete a file; true if it is gone. A storage that fails slowly is not tried with every one."""
        if self._failing_s < FAILING_S:
            began = time.monotonic()
            try:
                storage().delete(name)
            except OSError as error:
                self._failing_s += time.monotonic() - began
                self._first = self._first or f"{name}: {error}"
            else:
                return True
        self._failed += 1
        return False

    def log(self) -> None:
        """Say what failed, if anything did."""
        if self._failed:
            logger.warning(
                "files that could not be deleted, and stay for the next purge: %d, the first %s",
                self._failed,
                self._first,
            )


def link(name: str, base: str) -> str:
    """Return the address of a file here, at `base`, whatever the storage; buckets are seldom reachable for everyone."""
    return urljoin(base, f"/api/v1/files/{signing.dumps(name, salt=SALT, compress=False)}/{Path(name).name}")


def file_of(token: str) -> TaskFile:
    """The file that a link stands for; it is good for as long as a task that is over can be asked for.

    Raises:
        NotFound: if the link is forged, expired, or the file is gone.
    """
    try:
        name = signing.loads(token, salt=SALT, max_age=settings.TASK_RETENTION_HOURS * 3600)
        row: TaskFile = TaskFile.objects.get(not_forgotten("task__ended_at"), name=name)
    except (signing.BadSignature, TaskFile.DoesNotExist):
        raise NotFound(GONE) from None
    return row


def with_links(value: Any, base: str) -> Any:
    """Return the result with each `{"file": name}` turned into a link."""
    if isinstance(value, dict):
        if value.keys() == {"file"}:
            return link(str(value["file"]), base)
        return {key: with_links(item, base) for key, item in value.items()}
    return [with_links(item, base) for item in value] if isinstance(value, list) else value
