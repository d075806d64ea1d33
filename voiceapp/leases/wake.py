"""Telling whoever works on a line that there is something to do. A hint: what gets lost is found by the next poll.

Within a process, listeners are called; on PostgreSQL other processes hear it as well (`Ear`), by its LISTEN and NOTIFY.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from django.db import DatabaseError, connection, transaction

logger = logging.getLogger(__name__)

CHANNEL = "voiceapp_work"
LOOK_UP_S = 1.0
"""How often an ear looks up from listening, in case it should stop."""
RETRY_S = 5.0

_listeners: list[Callable[[str], None]] = []


def on_wake(listener: Callable[[str], None]) -> Callable[[], None]:
    """Be told the name of the line, from whatever thread commits; returns what ends it."""
    _listeners.append(listener)
    return partial(_listeners.remove, listener)


def wake(line: str) -> None:
    """There is work on a line, once the transaction at hand is committed."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, line])
    transaction.on_commit(partial(_tell, line))


def _tell(line: str) -> None:
    for listener in list(_listeners):
        listener(line)


class Ear:
    """Hears of work that other processes commit to the same PostgreSQL; deaf, and none the worse, on SQLite."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        """`heard` is called with the name of a line, from the ear's thread."""
        self._heard = heard
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="work-ear", daemon=True)

    def start(self) -> None:
        if connection.vendor == "postgresql":
            self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(LOOK_UP_S + 1.0)

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                self._listen_on_a_connection()
            except DatabaseError as error:
                logger.warning(
                    "Not told of new work, asking for it instead; listening again in %g s: %s", RETRY_S, error
                )
                self._over.wait(RETRY_S)

    def _listen_on_a_connection(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"LISTEN {CHANNEL}")
            with connection.wrap_database_errors:
                while not self._over.is_set():
                    for notice in connection.connection.notifies(timeout=LOOK_UP_S):
                        self._heard(notice.payload)
        finally:
            with suppress(DatabaseError):  # a pool may hand the connection on
                connection.cursor().execute(f"UNLISTEN {CHANNEL}")
            connection.close()
