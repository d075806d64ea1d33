"""Bounded threads for work that blocks, so that the event loop never does.

Three lanes keep short work from queueing behind long: `voice` (turn detection, recognition), `speak` (replies, speech)
and `batch` (embedding of whole documents, reranking), the last at low priority. A lane that is full refuses at once:
a caller who waits longer than a turn has already lost, and the refusal is what throttles him.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from django.conf import settings

from voiceapp.errors import EngineUnavailable

Result = TypeVar("Result")


class LaneFull(EngineUnavailable):
    """The lane holds as much work as it may; the caller is throttled."""

    code = "Throttling.Concurrency"
    http_status = 429


class Lane:
    """A few threads and a bounded queue in front of them. Safe to use from any event loop."""

    def __init__(self, name: str, *, threads: int, capacity: int, niceness: int = 0) -> None:
        """`capacity` counts running and waiting work together; `niceness` is added to the threads' priority number."""
        self.name = name
        self.threads = threads
        self.capacity = capacity
        self._pending = 0
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(
            threads, thread_name_prefix=f"lane-{name}", initializer=_renice, initargs=(niceness,)
        )

    @property
    def pending(self) -> int:
        """Work running or waiting now."""
        return self._pending

    @property
    def has_idle_thread(self) -> bool:
        """Whether work handed in now starts at once, and leaves a thread for what is urgent (where there are two)."""
        return self._pending < max(1, self.threads - 1)

    async def run(self, function: Callable[..., Result], *args: object) -> Result:
        """The result of `function(*args)`, computed in this lane.

        Cancelling the caller drops work that still waits; work that runs goes on to its end unheard, so long work
        takes an event and looks at it.

        Raises:
            LaneFull: if running and waiting work fill the lane.
        """
        with self._lock:
            if self._pending >= self.capacity:
                raise LaneFull(f"Too many conversations are busy at once ({self.name}); please try again.")
            self._pending += 1
        try:
            future = self._executor.submit(function, *args)
        except BaseException:
            self._left(None)
            raise
        future.add_done_callback(self._left)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Drop what waits and let the threads end after what runs."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _left(self, _: Future[Result] | None) -> None:
        with self._lock:
            self._pending -= 1


@dataclass(frozen=True, slots=True)
class Lanes:
    voice: Lane
    speak: Lane
    batch: Lane

    def close(self) -> None:
        for lane in (self.voice, self.speak, self.batch):
            lane.close()


@cache
def lanes() -> Lanes:
    """The lanes of this process."""
    return Lanes(
        voice=Lane("voice", threads=settings.VOICE_THREADS, capacity=settings.VOICE_THREADS * 12),
        speak=Lane("speak", threads=1, capacity=64),
        batch=Lane("batch", threads=1, capacity=64, niceness=10),
    )


LOWEST = 19
"""The greatest niceness that Linux and macOS know."""


def _renice(niceness: int) -> None:
    """Lower the priority of the calling thread by so much; on Linux it is a thread's own.

    By, not to: a server may have been started with `nice`, and only root may raise a priority again.
    """
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, min(LOWEST, os.getpriority(os.PRIO_PROCESS, thread) + niceness))
