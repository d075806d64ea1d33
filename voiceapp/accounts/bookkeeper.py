"""The thread on which the books are kept: one per process, with a database connection that stays open.

Django gives every request a thread of its own and, with it, a new connection. Holding and settling twice per call would
pay for that each time; here a call's rows cost one hop. Transactions of one process queue up behind each other, which
SQLite asks for anyway.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

from voiceapp.errors import VoiceError

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class BooksClosed(VoiceError):
    """The database does not answer, or takes nothing more; no call is served that could not be written down."""

    code = "ServiceUnavailable"
    http_status = 503


@functools.cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="bookkeeper")


def _on_a_sound_connection(entry: Callable[[], T]) -> T:
    """A connection that failed, or that the settings call too old, is opened anew; SQLite's never grows old."""
    if connection.errors_occurred or connection.settings_dict["CONN_MAX_AGE"] != 0:
        connection.close_if_unusable_or_obsolete()
    try:
        return entry()
    except (OperationalError, InterfaceError) as error:
        logger.error("the books cannot be kept: %s", error)
        raise BooksClosed("The server cannot write down what is used just now. Try again shortly.") from error


async def on_the_books(entry: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run what reads or writes rows on the bookkeeper's thread.

    Cancelling the caller does not take back an entry that has begun: whoever must know its result shields it.

    Raises:
        BooksClosed: if the database is gone, locked or full.
    """
    work = functools.partial(entry, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_thread(), _on_a_sound_connection, work)


def close_the_books() -> None:
    """Wait for what is being written and close the connection; the next entry opens another."""
    if _thread.cache_info().currsize:
        _thread().submit(lambda: connection.close()).result()  # the thread's own connection, not the caller's
