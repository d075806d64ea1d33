"""`manage.py worker`: the periodic housekeeping, beside the serving processes."""

from __future__ import annotations

import argparse
import logging
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from voiceapp.server.housekeeping import HOUR_S, tidy, try_to_tidy

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Delete transcripts past TRANSCRIPT_DAYS and expired logins, now and every hour. Stops on SIGTERM or Ctrl-C."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="do everything that is due and end")
        parser.add_argument("--every", type=float, default=HOUR_S, metavar="SECONDS", help="default: one hour")

    def handle(self, *, once: bool, every: float, **options: Any) -> None:
        if once:
            tidy()
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        logger.info("Housekeeping every %g s", every)
        while not stop.is_set():
            try_to_tidy(every)
            stop.wait(every)
        logger.info("Stopped")
