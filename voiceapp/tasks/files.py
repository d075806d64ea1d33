"""Files of tasks, in Django's storage: a folder by default, a bucket by the setting `TASK_STORAGE`.

A link to one is signed and expires; whoever has it may fetch the file without a key, as with an object store.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from django.conf import settings
from django.core import signing
from django.core.files import File
from django.core.files.storage import Storage, storages

from voiceapp.errors import NotFound
from voiceapp.tasks.models import Task, TaskFile, Upload

STORAGE = "tasks"
"""The storage's name in the setting `STORAGES`."""
SALT = "voiceapp.tasks.files"


def storage() -> Storage:
    return storages[STORAGE]


def put(path: Path, name: str) -> str:
    """Copy a file into the storage; the name that it has there. Touches no row."""
    with path.open("rb") as source:
        stored: str = storage().save(name, File(source))
    return stored


def note(task_pk: int, name: str, content_type: str) -> None:
    """Write down that a stored file belongs to a task."""
    TaskFile.objects.create(task_id=task_pk, name=name, content_type=content_type, size=storage().size(name))


def require(task: Task, name: str) -> str:
    """Where a file lies in the storage that a task may read: one of its own by that name, an upload by its address.

    Raises:
        NotFound: if it is neither a file of this task nor an upload of its account.
    """
    if TaskFile.objects.filter(task=task, name=name).exists():
        return name
    upload = Upload.objects.filter(account_id=task.account_id, key=name.removeprefix("oss://")).first()
    if upload is None:
        raise NotFound("The file is not there, or not there any more.")
    return str(upload.name)


def get(name: str, folder: Path) -> Path:
    """Copy a file out of the storage, into a folder. Touches no row."""
    target = folder / Path(name).name
    with storage().open(name, "rb") as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    return target


def delete_all(tasks: list[int]) -> None:
    """Delete the files of these tasks; one that is gone already is no matter."""
    for name in TaskFile.objects.filter(task_id__in=tasks).values_list("name", flat=True):
        storage().delete(name)


def link(name: str, base: str) -> str:
    """Where a file can be fetched: here, at `base`, wherever it lies; buckets are seldom reached from everywhere."""
    return urljoin(base, f"/api/v1/files/{signing.dumps(name, salt=SALT, compress=False)}/{Path(name).name}")


def file_of(token: str) -> TaskFile:
    """The file that a link stands for; it is good for as long as a task that is over can be asked for.

    Raises:
        NotFound: if the link is forged, expired, or the file is gone.
    """
    try:
        name = signing.loads(token, salt=SALT, max_age=settings.TASK_RETENTION_HOURS * 3600)
        row: TaskFile = TaskFile.objects.get(name=name)
    except (signing.BadSignature, TaskFile.DoesNotExist):
        raise NotFound("This link has expired, or its file is gone.") from None
    return row


def with_links(value: Any, base: str) -> Any:
    """The same with each `{"file": name}` turned into a link."""
    if isinstance(value, dict):
        if value.keys() == {"file"}:
            return link(str(value["file"]), base)
        return {key: with_links(item, base) for key, item in value.items()}
    return [with_links(item, base) for item in value] if isinstance(value, list) else value
