"""Wake-ups of workers when a queue has work. A hint: what gets lost is found by the next poll.

Listeners in this process are told once the transaction is committed; those in others hear of it where the database is
PostgreSQL, whose notifications leave with the commit (LISTEN, NOTIFY).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import psycopg
from django.db import connection, transaction

logger = logging.getLogger(__name__)

CHANNEL = "voiceapp_wake"
RETRY_S = 2.0
"""After how long a lost connection is made again; until then, work is found by the poll."""
KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""Keepalive of the listening connection, in seconds and probes: a dead one is noticed within 40 s."""

_PROCESS = secrets.token_hex(8)
_listeners: list[Callable[[str], None]] = []


def on_wake(listener: Callable[[str], None]) -> Callable[[], None]:
    """Be told the name of the queue, from whatever thread commits; returns what ends it."""
    _listeners.append(listener)
    return partial(_listeners.remove, listener)


def wake(queue: str) -> None:
    """There is work on a queue, once the transaction at hand is committed."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, f"{queue} {_PROCESS}"])
    transaction.on_commit(partial(_tell, queue))


def notified_parameters() -> Mapping[str, Any] | None:
    """Return psycopg's arguments for a connection that hears wake-ups; None where the database cannot notify."""
    if connection.vendor != "postgresql":
        return None
    parameters = {**KEEPALIVE, **connection.get_connection_params(), "autocommit": True}
    parameters.pop("cursor_factory", None)  # it belongs to connections that block
    return parameters


async def listen(parameters: Mapping[str, Any], queues: Iterable[str], heard: Callable[[str], None]) -> None:
    """Pass other processes' wake-ups on until cancelled; a connection that is lost is made again.

    Each time there is one, every queue is woken: earlier wake-ups may be lost.
    """
    queues = tuple(queues)
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(**parameters) as listening:
                await listening.execute(f"LISTEN {CHANNEL}")
                for queue in queues:
                    heard(queue)
                async for notification in listening.notifies():
                    queue, _, process = notification.payload.partition(" ")
                    if process != _PROCESS:  # one's own are told without this detour
                        heard(queue)
        except psycopg.OperationalError as error:
            logger.warning("No wake-ups from other processes, trying again in %g s: %s", RETRY_S, error)
            await asyncio.sleep(RETRY_S)


def _tell(queue: str) -> None:
    for listener in list(_listeners):
        listener(queue)
