"""`manage.py worker`: tasks and the periodic housekeeping, beside the serving processes."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from voiceapp import tracing
from voiceapp.engines.models import providers
from voiceapp.leases.loop import Loop
from voiceapp.server.housekeeping import HOUR_S, keep_tidy, tidy
from voiceapp.server.work import keep_working, queues

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = (
        "Work on tasks, and every hour delete what is past its time: transcripts, finished tasks, expired logins. "
        "Any number of these may run beside servers with TASK_ENGINE=worker. Stops on SIGTERM or Ctrl-C."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="delete what is past its time and end")
        parser.add_argument("--every", type=float, default=HOUR_S, metavar="SECONDS", help="default: one hour")

    def handle(self, *, once: bool, every: float, **options: Any) -> None:
        if once:
            tidy()
            return
        asyncio.run(_work(every))
        tracing.close()


async def _work(every_s: float) -> None:
    loop = Loop(queues())
    running = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, loop.stop)
    tidying = asyncio.create_task(keep_tidy(every_s), name="housekeeping")
    logger.info("Working on tasks as %s; housekeeping every %g s", loop.worker, every_s)
    try:
        await keep_working(loop)
    finally:
        tidying.cancel()
        await asyncio.gather(tidying, return_exceptions=True)
        await providers.close()
    logger.info("Stopped, %d threads left", threading.active_count() - 1)
