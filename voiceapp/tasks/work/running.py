"""Tasks that this process works on: how far they are, and which of them only wait. Safe from any thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from voiceapp.leases.rows import Lease


class RunningTasks:
    """One entry for each lease, from `begin` to `end`."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._parts: dict[Lease, list[float]] = {}
        """Progress of each part, 0 to 1. Read by the renewing thread."""
        self._waiting: Counter[Lease] = Counter()
        """Number of parts of a task that only wait."""

    @contextmanager
    def entry(self, lease: Lease, *, parts: int, ended: int) -> Iterator[None]:
        """Until the end of the block the task is worked on; its first `ended` parts are over."""
        with self._guard:
            self._parts[lease] = [1.0] * ended + [0.0] * (parts - ended)
        try:
            yield
        finally:
            with self._guard:
                del self._parts[lease]

    def note_progress(self, lease: Lease, part: int, share: float) -> None:
        """Part number `part`, from 0, is this far, 0 to 1."""
        with self._guard:
            if parts := self._parts.get(lease):
                parts[part] = min(max(share, 0.0), 1.0)

    def progress(self, lease: Lease) -> float | None:
        with self._guard:
            parts = self._parts.get(lease)
            return sum(parts) / len(parts) if parts else None

    @contextmanager
    def waiting(self, lease: Lease) -> Iterator[None]:
        """Until the end of the block, a part of the task only waits for another service."""
        with self._guard:
            self._waiting[lease] += 1
        try:
            yield
        finally:
            with self._guard:
                self._waiting[lease] -= 1
                self._waiting += Counter()  # without those that came to nothing

    @property
    def count_waiting(self) -> int:
        return len(self._waiting)
