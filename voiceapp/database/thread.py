"""Transactions from async code: one thread per process, with a database connection that stays open.

Django gives every request a thread of its own and, with it, a new connection. Reserving and settling twice per call
would pay for that each time; here a call's rows cost one hop. Transactions of one process queue up behind each other,
which SQLite asks for anyway.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

from voiceapp.database.patience import waiting
from voiceapp.errors import VoiceError

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseUnavailable(VoiceError):
    """The database does not respond, or is full; a call whose use cannot be recorded is not served."""

    code = "ServiceUnavailable"
    http_status = 503

    def __init__(self, message: str = "The database of this server does not respond. Try again shortly.") -> None:
        super().__init__(message)


GRACE_S = 0.6
"""Extra time for a function that has begun: it ends by itself, and its true result is worth more than a guess."""


@functools.cache
def _thread(name: str = "database") -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)


def _on_a_sound_connection(function: Callable[[], T]) -> T:
    """A connection that failed, or that the settings call too old, is opened anew; SQLite's never grows old."""
    if connection.errors_occurred or connection.settings_dict["CONN_MAX_AGE"] != 0:
        connection.close_if_unusable_or_obsolete()
    try:
        return function()
    except (OperationalError, InterfaceError) as error:
        logger.warning("database: unavailable: %s", error)
        raise DatabaseUnavailable from error


async def run_in_db_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that reads or writes rows in the database thread, and return its result.

    Cancelling the caller does not stop a function that has begun: a caller who must know its result shields it.

    Raises:
        DatabaseUnavailable: if the database is gone, locked or full, or the function's turn did not come within the
            time that the request at hand may wait; it does not run later then.
    """
    return await _run("database", functools.partial(function, *args, **kwargs))


async def run_in_records_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the same in another thread, with a connection of its own, for rows that no request waits for.

    Raises:
        DatabaseUnavailable: if the database is gone, locked or full.
    """
    return await _run("records", functools.partial(function, *args, **kwargs))


async def _run(thread: str, work: Callable[[], T]) -> T:
    context = contextvars.copy_context()  # the thread waits no longer for the database than its caller may
    job = _thread(thread).submit(context.run, _on_a_sound_connection, work)
    result = asyncio.wrap_future(job)
    with waiting() as left_s:
        try:
            await asyncio.wait([result], timeout=left_s)
            if not result.done() and not job.cancel():
                await asyncio.wait([result], timeout=GRACE_S)
        finally:
            if not result.done():
                result.cancel()
    if result.cancelled():
        raise DatabaseUnavailable
    return result.result()


def close_db_thread() -> None:
    """Wait for what is being written and close the connections; the next function opens another."""
    for thread in (_thread("records"), _thread("database")):
        thread.submit(lambda: connection.close()).result()  # the thread's own connection, not the caller's
