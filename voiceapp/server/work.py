"""Workers of tasks and deliveries: the queues, and the thread that works on them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from voiceapp.leases.loop import STOP_S, Loop, WorkQueue
from voiceapp.leases.rows import oldest_due_s
from voiceapp.leases.wake import listen, notified_parameters, on_wake
from voiceapp.tasks import signals
from voiceapp.tasks.work.queue import TaskQueue
from voiceapp.webhooks import events
from voiceapp.webhooks.queue import DeliveryQueue

logger = logging.getLogger(__name__)

LATE_S = 60.0
"""A worker takes what is due within seconds, unless all are busy."""

QUEUE_NAMES = (signals.QUEUE_NAME, events.QUEUE_NAME)


def queues() -> Sequence[WorkQueue]:
    return (TaskQueue(), DeliveryQueue())


@asynccontextmanager
async def woken(listener: Callable[[str], None]) -> AsyncIterator[None]:
    """Within the block, the listener is told the names of queues on which there is work: by this process, from any
    thread, and by others, where the database passes it on.
    """
    forget = on_wake(listener)
    parameters = notified_parameters()
    listening = [asyncio.create_task(listen(parameters, QUEUE_NAMES, listener), name="wake-ups")] if parameters else []
    try:
        yield
    finally:
        forget()
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)


async def keep_working(loop: Loop) -> None:
    """Work until the loop is stopped, and begin what is new at once."""
    async with woken(loop.wake):
        await loop.run()


def run_loop(loop: Loop) -> None:
    """`keep_working` on an event loop of its own. Fit for a thread."""
    asyncio.run(keep_working(loop))


async def watch_for_workers() -> None:
    """Warn of work that no worker takes, until cancelled."""
    while True:
        await asyncio.sleep(LATE_S)
        await sync_to_async(warn_of_late_work, thread_sensitive=False)()


def warn_of_late_work() -> None:
    """Log for how long due work has waited, where that is longer than LATE_S."""
    try:
        waiting = oldest_due_s()
    except DatabaseError:  # readiness says so
        return
    finally:
        close_old_connections()
    for name, waited_s in waiting.items():
        if waited_s >= LATE_S:
            logger.warning(
                "%s: the oldest that is due has waited for %.0f s; is a worker running? (TASK_ENGINE=%s)",
                name,
                waited_s,
                settings.TASK_ENGINE,
            )


class EmbeddedWork:
    """The loop in a thread of the serving process: its event loop carries no audio."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._thread = threading.Thread(target=run_loop, args=(loop,), name="work", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Claim nothing more, end or give back what runs. Blocks for a few seconds at most."""
        self._loop.stop()
        if self._thread.is_alive():
            self._thread.join(STOP_S + 2.0)
