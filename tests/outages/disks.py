"""A disk of a test's own, small enough to be filled.

Where this process may mount, it is a file system in memory. Elsewhere, as in a container without privileges, no file of
the server may grow: writing then fails as on a full disk, with another error.
"""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.realtime.product import Product


class SmallDisk:
    """`fill` and `clear` take and give back what is free."""

    def __init__(self, folder: Path, *, is_mounted: bool) -> None:
        self.folder = folder
        self.is_mounted = is_mounted
        self._filling = folder / "filling"

    def fill(self, product: Product) -> None:
        """Leave no room at all."""
        if not self.is_mounted:
            resource.prlimit(product.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            return
        with self._filling.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:  # it is full
                pass

    def clear(self, product: Product) -> None:
        if self.is_mounted:
            self._filling.unlink()
        else:
            resource.prlimit(product.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@contextmanager
def small_disk(folder: Path, size_mib: int) -> Iterator[SmallDisk]:
    """A disk of so many MiB at `folder`, until the end of the block."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(folder)], capture_output=True
    )
    disk = SmallDisk(folder, is_mounted=mounted.returncode == 0)
    try:
        yield disk
    finally:
        if disk.is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
