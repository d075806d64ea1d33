"""Bounded threads for work that blocks, so that the event loop never does.

Three lanes keep short work from queueing behind long: `voice` (turn detection, recognition, neural speech), `reply`
(search and skills, a few milliseconds each) and `batch` (embedding of whole documents, reranking), the last at low
priority. In a lane, what is needed first goes first. A lane that is full refuses at once: a caller who waits longer
than a turn has already lost, and the refusal is what throttles him.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, TypeVar

from django.conf import settings

from voiceapp import metrics
from voiceapp.errors import EngineUnavailable
from voiceapp.load import load

Result = TypeVar("Result")

UNPACED_S = 1.0
"""Speech made for a file has no listener yet: it is needed so much later than what is heard."""
PATIENT_S = 0.25
"""Lead beyond which work leaves one thread to what may come before."""
CORES_OVER_S = 0.5
"""Least time over which the use of cores is measured."""

_needed_at: ContextVar[float | None] = ContextVar("needed_at", default=None)


def need_by(moment: float) -> None:
    """Set the deadline of all that the running task hands to lanes from now on, on the clock of `time.monotonic`.

    Work of tasks that say nothing is needed at once.
    """
    _needed_at.set(moment)


def not_heard_yet() -> None:
    """Mark what the running task hands to lanes next as being for a file."""
    need_by(time.monotonic() + UNPACED_S)


def moment_needed() -> float:
    """Return the deadline of what the running task hands to lanes now."""
    moment = _needed_at.get()
    return time.monotonic() if moment is None else moment


class LaneFull(EngineUnavailable):
    """The lane holds as much work as it may; the caller is throttled."""

    code = "Throttling.Concurrency"
    http_status = 429


@dataclass(order=True, slots=True)
class _Work:
    """Waits for a thread; of two that are needed at the same time, the one that came first goes first."""

    needed_at: float
    number: int
    function: Callable[..., Any] = field(compare=False)
    args: tuple[object, ...] = field(compare=False)
    future: Future[Any] = field(compare=False)
    handed_in_at: float = field(default_factory=time.monotonic, compare=False)

    @property
    def is_patient(self) -> bool:
        return self.needed_at > time.monotonic() + PATIENT_S

    def do(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self.function(*self.args)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class Lane:
    """A few threads and a bounded queue in front of them. Safe to use from any event loop."""

    def __init__(self, name: str, *, threads: int, capacity: int, niceness: int = 0) -> None:
        """`capacity` counts running and waiting work together; `niceness` is added to the threads' priority number."""
        self.name = name
        self.threads = threads
        self.capacity = capacity
        self._pending = 0
        self._waiting: list[_Work] = []
        """A heap."""
        self._numbers = count()
        self._patient = 0
        """Threads that do patient work."""
        self._lock = threading.Lock()
        self._waits = metrics.lane_wait_seconds.labels(name)
        self._executor = ThreadPoolExecutor(
            threads, thread_name_prefix=f"lane-{name}", initializer=_renice, initargs=(niceness,)
        )

    @property
    def pending(self) -> int:
        return self._pending

    @property
    def is_free(self) -> bool:
        """Return whether work handed in now starts at once."""
        return self._pending < self.threads

    @property
    def has_idle_thread(self) -> bool:
        """Return whether work handed in now starts at once, and leaves a thread for urgent work (of two), or
        takes the one that patient work leaves."""
        return self._pending - self._patient < max(1, self.threads - 1)

    async def run(self, function: Callable[..., Result], *args: object) -> Result:
        """The result of `function(*args)`, computed in this lane when it is its turn (see `need_by`).

        Cancelling the caller drops work that still waits; work that runs goes on to its end unheard, so long work
        takes an event and looks at it.

        Raises:
            LaneFull: if running and waiting work fill the lane.
        """
        work = _Work(moment_needed(), next(self._numbers), function, args, Future())
        with self._lock:
            if self._pending >= self.capacity:
                raise LaneFull(f"Too many conversations are busy at once ({self.name}); please try again.")
            self._executor.submit(self._serve)
            self._pending += 1
            heappush(self._waiting, work)
        work.future.add_done_callback(self._left)
        result: Result = await asyncio.wrap_future(work.future)
        return result

    def close(self) -> None:
        """Drop what waits and let the threads end after what runs."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        for work in tuple(self._waiting):
            work.future.cancel()

    def _serve(self) -> None:
        """Do what waits, as far as a thread is free for it; submitted once for each work, so that none is forgotten."""
        while (taken := self._take()) is not None:
            work, is_patient = taken
            waited_s = time.monotonic() - work.handed_in_at
            self._waits.observe(waited_s)
            if self.name == "voice" and not is_patient:
                load().voice_waited(waited_s)
            work.do()
            if is_patient:
                with self._lock:
                    self._patient -= 1

    def _take(self) -> tuple[_Work, bool] | None:
        """Return the most urgent work, and whether it is patient. None where only a thread that is kept free could do
        it: the threads that do patient work come back for it."""
        with self._lock:
            if not self._waiting:
                return None
            is_patient = self._waiting[0].is_patient
            if is_patient and self._patient >= max(1, self.threads - 1):
                return None
            self._patient += is_patient
            return heappop(self._waiting), is_patient

    def _left(self, future: Future[Any]) -> None:
        with self._lock:
            self._pending -= 1
            if future.cancelled():
                self._waiting = [work for work in self._waiting if work.future is not future]
                heapify(self._waiting)


class CoresInUse:
    """Number of cores that this process keeps busy. Without a clock of its own."""

    def __init__(self, now: float, cpu_s: float) -> None:
        self._at, self._cpu_s = now, cpu_s
        self._cores = 0.0

    def look(self, now: float, cpu_s: float) -> float:
        """`cpu_s` is the processor time of all threads so far."""
        if now - self._at >= CORES_OVER_S:
            self._cores = (cpu_s - self._cpu_s) / (now - self._at)
            self._at, self._cpu_s = now, cpu_s
        return self._cores


cores_in_use = CoresInUse(time.monotonic(), time.process_time())


def has_idle_core() -> bool:
    """Return whether this process has left a core alone lately, or half of its only one."""
    return _cores_in_use() < max(0.5, (os.cpu_count() or 1) - 1)


def is_calm() -> bool:
    """Return whether this process has used less than a quarter of the cores lately: then work may be done in vain."""
    return _cores_in_use() < (os.cpu_count() or 1) / 4


def _cores_in_use() -> float:
    """By the clock of the event loop, which a replay sets forward."""
    return cores_in_use.look(asyncio.get_running_loop().time(), time.process_time())


@dataclass(frozen=True, slots=True)
class Lanes:
    voice: Lane
    reply: Lane
    batch: Lane

    def close(self) -> None:
        for lane in self:
            lane.close()

    def __iter__(self) -> Iterator[Lane]:
        return iter((self.voice, self.reply, self.batch))


@cache
def lanes() -> Lanes:
    threads = settings.VOICE_THREADS
    return Lanes(
        voice=Lane("voice", threads=threads, capacity=threads * 32, niceness=3),
        reply=Lane("reply", threads=1, capacity=64),
        batch=Lane("batch", threads=1, capacity=64, niceness=13),
    )


LOWEST = 19
"""The greatest niceness that Linux and macOS know."""


def _renice(niceness: int) -> None:
    """Lower the priority of the calling thread by so much; on Linux it is a thread's own.

    By, not to: a server may have been started with `nice`, and only root may raise a priority again.
    """
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, min(LOWEST, os.getpriority(os.PRIO_PROCESS, thread) + niceness))
