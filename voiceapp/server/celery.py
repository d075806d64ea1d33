"""Tasks and deliveries on a Celery that is there already: `celery -A voiceapp.server.celery worker`.

A message says "there is work in this queue" and nothing else: what to do stands in our tables, and so does the promise
that it gets done. A lost message is sent again by the next sweep, a repeated one finds nothing to do, and the row of a
worker that was killed comes back when its lease ends. So messages are acknowledged early and expire soon.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import os
import sys
import threading
from time import monotonic

from celery import Celery
from celery.signals import setup_logging, worker_init
from celery.utils.log import get_multiprocessing_logger
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import DatabaseError, close_old_connections
from django.utils.log import configure_logging
from kombu.exceptions import KombuError, OperationalError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "voiceapp.settings")

logger = logging.getLogger(__name__)

SWEEP_S = 2.0
"""Interval of looks at the tables for work that no message announced."""
EXPIRES_S = 10.0
CLAIM_FOR_S = 20.0
"""Time for which one message is worked on before the next has its turn, or a stopping worker ends."""
MOST_MESSAGES = 16
"""Messages for one queue in one sweep; a worker that gets one goes on until nothing is due."""

app = Celery("voiceapp")
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    task_default_queue="voiceapp",
    task_serializer="json",
    accept_content=["json"],
    task_ignore_result=True,
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


@setup_logging.connect
def _log_as_the_server_does(**_: object) -> None:
    """Keep Celery from replacing the log's handlers, which mask keys."""
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
    get_multiprocessing_logger().propagate = True


@worker_init.connect
def _check_settings(**_: object) -> None:
    """Refuse what management commands refuse, in a sentence."""
    try:
        call_command("check")
    except SystemCheckError as error:
        sys.exit(str(error))


@app.task(name="voiceapp.work")
def work(name: str) -> None:
    asyncio.run_coroutine_threadsafe(_work_on(name), _event_loop()).result()


async def _work_on(name: str) -> None:
    from voiceapp.leases.loop import Loop  # here, for Celery sets Django up after it has read this module
    from voiceapp.server.work import queues

    wanted = [queue for queue in queues() if queue.name == name]
    await Loop(wanted).run(claim_for_s=CLAIM_FOR_S)


@functools.cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """One for the life of the process, since engines keep to the loop that they were first used on."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="work", daemon=True).start()
    return loop


class Dispatch:
    """Sends messages from a serving process: when work is committed, and for due work without a message."""

    def __init__(self) -> None:
        from voiceapp.server.work import queues

        self._queues = queues()
        self._woken: set[str] = set()
        """Lines with new work that no message was sent for yet."""
        self._news = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dispatch", daemon=True)

    def wake(self, queue_name: str) -> None:
        self._woken.add(queue_name)
        self._news.set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._news.set()
        self._thread.join(SWEEP_S)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._sweep()
                until = monotonic() + SWEEP_S
                while self._news.wait(max(0.0, until - monotonic())) and not self._over.is_set():
                    self._news.clear()
                    while self._woken:
                        self._send(self._woken.pop())
            except DatabaseError as error:
                logger.warning("The database does not say what is due; asking again in %g s: %s", SWEEP_S, error)
                self._over.wait(SWEEP_S)
            except (KombuError, OperationalError, OSError) as error:
                logger.warning("The broker takes no messages; trying again in %g s: %s", SWEEP_S, error)
                self._over.wait(SWEEP_S)
            finally:
                close_old_connections()

    def _sweep(self) -> None:
        for queue in self._queues:
            due = queue.count_due(MOST_MESSAGES * queue.capacity)
            for _ in range(math.ceil(due / queue.capacity)):
                self._send(queue.name)

    def _send(self, queue_name: str) -> None:
        work.apply_async((queue_name,), retry=False, expires=EXPIRES_S)
