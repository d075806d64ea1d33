"""Memory that this process may use: the machine's, or less where its container has a limit."""

from __future__ import annotations

import os
from pathlib import Path

LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files in which Linux keeps a container's limit: control groups of version 2 and 1."""


def memory_bytes() -> int:
    """Bytes that all processes of this installation may use together."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in LIMITS:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return min(found)
