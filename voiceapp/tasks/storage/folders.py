"""Files of tasks in a folder of this machine."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from django.core.files.storage import FileSystemStorage


class TaskFolder(FileSystemStorage):
    """Each task and each upload has a folder of its own, which goes with its last file."""

    def delete(self, name: str) -> None:
        super().delete(name)
        own = list(Path(name).parents)[:-2]  # all but `tasks` or `uploads`, and what they lie in
        with suppress(OSError):  # something lies there still
            for folder in own:
                Path(self.path(str(folder))).rmdir()
