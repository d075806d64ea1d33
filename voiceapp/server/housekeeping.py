"""Periodic work: words, tasks, events and logins past their time, secrets sealed with yesterday's key.

`serve` sees to it by itself, because an installation is complete with that one process; `worker` does the same in a
process of its own. Doing it twice at once does no harm.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from voiceapp.accounts.models import SecondFactor
from voiceapp.agents.answering import deciding
from voiceapp.agents.files import hold
from voiceapp.agents.models import Agent
from voiceapp.database.thread import run_in_db_thread
from voiceapp.engines.models.local_servers import local_servers
from voiceapp.realtime.aoq.grants import delete_past_grants
from voiceapp.realtime.aoq.relays import forget_dead_relays
from voiceapp.realtime.lifetime.stale_sessions import close_overdue
from voiceapp.realtime.records.recording import purge_recordings
from voiceapp.realtime.retention import purge_transcripts
from voiceapp.sealing import reseal_all
from voiceapp.tasks.retention import purge_tasks
from voiceapp.webhooks.models import WebhookEndpoint
from voiceapp.webhooks.retention import purge_events

logger = logging.getLogger(__name__)

HOUR_S = 3600.0


async def set_in_order() -> None:
    """Publish the agents of AGENTS_DIR, where a mistake stops nothing, and tell of model servers on this machine that
    might reply."""
    if settings.AGENTS_DIR:
        for mistake in await run_in_db_thread(hold, Path(settings.AGENTS_DIR), logger.info):
            logger.error("agent %s", mistake)
    if not deciding():
        for server in await local_servers():
            logger.info("%s", server.line)


def tidy() -> None:
    """Everything that is due now.

    Raises:
        DatabaseError: if the database does not answer.
        Exception: whatever the storage of files raises that does not answer.
    """
    overdue = close_overdue(timezone.now())
    purged = purge_transcripts(timezone.now())
    untold = purge_events(timezone.now())
    delete_past_grants(timezone.now())
    forget_dead_relays(timezone.now())
    sealed = reseal_all(WebhookEndpoint.objects.all(), "secret_sealed", "old_secret_sealed")
    sealed += reseal_all(Agent.objects.all(), "sealed_key")
    sealed += reseal_all(SecondFactor.objects.all(), "sealed_secret")
    call_command("clearsessions")
    forgotten = purge_tasks(timezone.now())  # last: their bucket may not respond
    recordings = purge_recordings(timezone.now())
    for said, count in (
        ("Closed %d conversations that must be over", overdue),
        ("Deleted the words of %d turns", purged),
        ("Deleted %d tasks", forgotten),
        ("Deleted %d recordings", recordings),
        ("Deleted %d webhook events", untold),
        ("Sealed %d secrets of webhook endpoints, agents and people with the present key", sealed),
    ):
        if count:
            logger.info(said, count)


def try_to_tidy() -> None:
    """`tidy`, whose failure ends nothing."""
    try:
        tidy()
    except DatabaseError as error:  # such as one before its first migration; readiness says so
        logger.warning("Housekeeping waits for the database, trying again in an hour: %s", error)
    except Exception:  # what this process works on beside it must not end with it
        logger.exception("Housekeeping did not come to its end; trying again in an hour")
    finally:
        close_old_connections()


async def keep_tidy() -> None:
    """Tidy now and every hour, on a thread of its own, until cancelled."""
    while True:
        await sync_to_async(try_to_tidy, thread_sensitive=False)()
        await asyncio.sleep(HOUR_S)
