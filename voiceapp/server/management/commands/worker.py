"""`manage.py worker`: tasks and the periodic housekeeping, beside the serving processes."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from voiceapp import tracing
from voiceapp.engines.models import providers
from voiceapp.leases.loop import Loop
from voiceapp.server.housekeeping import keep_tidy
from voiceapp.server.work import keep_working, queues

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = (
        "Work on tasks, and every hour delete what is past its time: transcripts, finished tasks, expired logins. "
        "Any number of these may run beside servers with TASK_ENGINE=worker. Stops on SIGTERM or Ctrl-C."
    )

    def handle(self, **options: Any) -> None:
        asyncio.run(_work())
        tracing.close()


async def _work() -> None:
    loop = Loop(queues())
    running = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, loop.stop)
    tidying = asyncio.create_task(keep_tidy(), name="housekeeping")
    logger.info("Working on tasks as %s", loop.worker)
    try:
        await keep_working(loop)
    finally:
        tidying.cancel()
        await asyncio.gather(tidying, return_exceptions=True)
        await providers.close()
    logger.info("Stopped, %d threads left", threading.active_count() - 1)
