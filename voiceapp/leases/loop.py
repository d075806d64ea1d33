"""The loop that works on leased rows, for any number of queues at once.

    Loop([task_line, delivery_line]).run()      on an event loop that carries no audio

The database is talked to from one thread of its own. Leases are renewed from another, which goes on when the work holds
up the event loop, so that only a dead or frozen process loses its rows.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from django.db import DatabaseError, close_old_connections, connections

from voiceapp.leases.rows import Lease

logger = logging.getLogger(__name__)

T = TypeVar("T")

POLL_S = 1.0
"""A wake-up that got lost costs at most this long."""
RETRY_S = 5.0
"""Pause after the database did not answer."""
STOP_S = 5.0
"""Time that work in progress has to end after the loop was told to stop; then it is released."""


class WorkQueue(Protocol):
    """One kind of work: where it is claimed from and what is done with it."""

    name: str
    renew_every_s: float
    """Interval of renewals of a claimed row: a third of its lease, or less where progress is reported more often."""

    @property
    def capacity(self) -> int:
        """Rows that one process may work on at once, at present."""

    def claim(self, worker: str, limit: int) -> Sequence[Lease]:
        """Take up to `limit` due rows. Runs in the database's thread."""

    def count_due(self, limit: int) -> int:
        """Count the rows that could be claimed now, up to `limit`."""

    def renew(self, lease: Lease) -> bool:
        """Keep a row; False when it was lost. Runs in the renewing thread."""

    def release(self, lease: Lease) -> bool:
        """Give a row back undone. Runs in the database's thread."""

    async def work(self, lease: Lease, database: Callable[..., Any]) -> None:
        """Do the work and finish the row. `await database(function, *args)` runs a function in the database's thread.

        Cancelled when the lease was lost or the loop ends. What goes wrong with the work itself is a result and is
        written to the row; only an unforeseen error may be raised.
        """

    async def close(self) -> None:
        """Let go of what the work needed. Called once, on the loop, after the last work."""


def worker_name() -> str:
    """Unique to this loop: host, process and a random part."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"


class Loop:
    def __init__(
        self,
        queues: Sequence[WorkQueue],
        *,
        worker: str | None = None,
        poll_s: float = POLL_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` is one that goes on while the machine sleeps, in seconds."""
        self.queues = queues
        self._clock = clock
        self.worker = worker or worker_name()
        self._poll_s = poll_s
        self._database = ThreadPoolExecutor(1, thread_name_prefix="leases-database")
        self._running: dict[asyncio.Task[None], tuple[WorkQueue, Lease]] = {}
        self._renewed_at = {queue.name: clock() for queue in queues}
        self._wakes = {queue.name: asyncio.Event() for queue in queues}
        self._stop = asyncio.Event()
        self._is_stopped = False
        self._over = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def wake(self, queue: str) -> None:
        """There is work on a queue. From any thread."""
        if self._loop is not None and queue in self._wakes and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wakes[queue].set)

    def stop(self) -> None:
        """Claim nothing more, end what can be ended, give back the rest. From any thread, even before it runs."""
        self._is_stopped = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    async def run(self, *, claim_for_s: float | None = None) -> None:
        """Work until `stop`; or until nothing more is due, or was taken within `claim_for_s`."""
        self._loop = asyncio.get_running_loop()
        if self._is_stopped:
            self._stop.set()
        claim_until = None if claim_for_s is None else self._loop.time() + claim_for_s
        renewing = threading.Thread(target=self._keep_renewing, name="leases-renewing", daemon=True)
        renewing.start()
        claiming = [
            asyncio.create_task(self._keep_claiming(queue, claim_until), name=f"claim {queue.name}")
            for queue in self.queues
        ]
        claimed = asyncio.gather(*claiming)
        stopping = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            await asyncio.wait((stopping, claimed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*claiming, stopping):
                task.cancel()
            await asyncio.gather(claimed, *claiming, stopping, return_exceptions=True)
            await self._wind_up()
            for queue in self.queues:
                await queue.close()
            self._over.set()
            await asyncio.to_thread(renewing.join)
            await self.database(_close_connections)
            self._database.shutdown(wait=False)

    async def database(self, function: Callable[..., T], *args: object) -> T:
        """The result of a function that talks to the database, from the thread that does."""
        return await asyncio.get_running_loop().run_in_executor(self._database, function, *args)

    async def _keep_claiming(self, queue: WorkQueue, until_s: float | None) -> None:
        wake = self._wakes[queue.name]
        while True:
            wake.clear()
            running = sum(1 for of, _ in self._running.values() if of is queue)
            free = queue.capacity - running
            may_claim = free > 0 and (until_s is None or asyncio.get_running_loop().time() < until_s)
            leases: Sequence[Lease] = ()
            try:
                leases = await self._claim(queue, free) if may_claim else ()
            except DatabaseError as error:
                logger.warning("%s: cannot be claimed, trying again in %g s: %s", queue.name, RETRY_S, error)
                await asyncio.sleep(RETRY_S)
            except Exception:
                logger.exception("%s: claiming failed with an unexpected error, again in %g s", queue.name, RETRY_S)
                await asyncio.sleep(RETRY_S)
            for lease in leases:
                task = asyncio.create_task(self._work(queue, lease), name=f"{queue.name} {lease.row_id}")
                self._running[task] = (queue, lease)
                task.add_done_callback(self._left)
            if until_s is not None and not leases and not running:
                return
            # Woken by new work, or by room for more of it; a claim takes all that may be taken.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):
                    await wake.wait()

    async def _claim(self, queue: WorkQueue, free: int) -> Sequence[Lease]:
        claiming = asyncio.ensure_future(self.database(self._renew_and_claim, queue, free))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            await asyncio.wait([claiming])
            if claiming.exception() is None:
                for lease in claiming.result():
                    await self._give_back(queue, lease)
            raise

    def _renew_and_claim(self, queue: WorkQueue, free: int) -> Sequence[Lease]:
        # A connection lasts until it fails: making a new one costs more than a claim.
        for connection in connections.all(initialized_only=True):
            if connection.errors_occurred:
                connection.close_if_unusable_or_obsolete()
        if self._clock() - self._renewed_at[queue.name] > 2 * queue.renew_every_s:
            self._renew(queue)  # lest a process that was frozen takes from itself what it works on
        return queue.claim(self.worker, free)

    async def _work(self, queue: WorkQueue, lease: Lease) -> None:
        try:
            await queue.work(lease, self.database)
        except DatabaseError as error:
            logger.warning("%s %s: begins again when its lease is over: %s", queue.name, lease.row_id, error)
        except Exception:
            # The lease ends by itself; the next claim counts this attempt.
            logger.exception("%s %s: failed with an unexpected error", queue.name, lease.row_id)

    def _lose(self, task: asyncio.Task[None]) -> None:
        if task in self._running:  # it did not just end
            queue, lease = self._running[task]
            logger.info("%s %s: lease lost, work cancelled", queue.name, lease.row_id)
            task.cancel()

    def _left(self, task: asyncio.Task[None]) -> None:
        queue, _ = self._running.pop(task)
        self._wakes[queue.name].set()

    async def _wind_up(self) -> None:
        if self._running:
            await asyncio.wait(list(self._running), timeout=STOP_S)
        cut = list(self._running.items())
        for task, _ in cut:
            task.cancel()
        await asyncio.gather(*(task for task, _ in cut), return_exceptions=True)
        for _, (queue, lease) in cut:
            await self._give_back(queue, lease)

    async def _give_back(self, queue: WorkQueue, lease: Lease) -> None:
        try:
            await self.database(queue.release, lease)
        except DatabaseError as error:  # the lease ends by itself
            logger.warning("%s %s: could not be released: %s", queue.name, lease.row_id, error)

    def _keep_renewing(self) -> None:
        every_s = min((queue.renew_every_s for queue in self.queues), default=10.0)
        while not self._over.wait(every_s):
            for queue in self.queues:
                if self._clock() - self._renewed_at[queue.name] > queue.renew_every_s - every_s / 2:
                    self._renew(queue)
            close_old_connections()
        _close_connections()

    def _renew(self, queue: WorkQueue) -> None:
        """Keep what is worked on. In the renewing thread, or in the database's when that one is late."""
        self._renewed_at[queue.name] = self._clock()
        for task, (of, lease) in list(self._running.items()):
            if of is not queue:
                continue
            try:
                kept = queue.renew(lease)
            except DatabaseError as error:
                logger.warning("%s %s could not be renewed: %s", queue.name, lease.row_id, error)
                continue
            if not kept and self._loop is not None:
                self._loop.call_soon_threadsafe(self._lose, task)


def _close_connections() -> None:
    connections.close_all()
