"""Memory of this process: how much it may use, and what it gives back."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files in which Linux keeps a container's limit: control groups of version 2 and 1."""


def memory_bytes() -> int:
    """Bytes that all processes of this installation may use together: the machine's, or less where its container has a
    limit."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in LIMITS:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return min(found)


def give_back() -> None:
    """Give the system back what is allocated and free, where the C library can (glibc's keeps it otherwise)."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
