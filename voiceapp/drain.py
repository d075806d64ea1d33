"""Stopping without cutting anybody off: who is still being served, and has the stop begun.

The runner begins the drain on SIGTERM; readiness turns 503, and the front refuses new sockets. Open conversations go on
while there is time (`end_conditions.wait_stopping`), and then end in their own words (`session.closing`, close code
4012). The runner waits until the work is gone or its patience ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Drain:
    """One process's stop. All methods belong to the event loop's thread."""

    def __init__(self) -> None:
        self._begun = False
        self._working = 0
        # Futures and not an asyncio.Event: the process-wide drain outlives a loop where tests use one loop each.
        self._waiting_begun: set[asyncio.Future[None]] = set()
        self._waiting_idle: set[asyncio.Future[None]] = set()

    @property
    def begun(self) -> bool:
        return self._begun

    @property
    def working(self) -> int:
        """Requests and sockets whose application has not returned yet."""
        return self._working

    def begin(self) -> None:
        """Start the stop; saying it again changes nothing."""
        self._begun = True
        _wake(self._waiting_begun)

    async def wait_begun(self) -> None:
        """Return when the server starts to stop, at once if it already has."""
        if not self._begun:
            await _sleep_in(self._waiting_begun)

    @contextmanager
    def work(self) -> Iterator[None]:
        """Hold the stop back, for as long as a request or a socket is served."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1
            if not self._working:
                _wake(self._waiting_idle)

    async def wait_idle(self) -> None:
        while self._working:
            await _sleep_in(self._waiting_idle)


def _wake(sleepers: set[asyncio.Future[None]]) -> None:
    for sleeper in sleepers:
        if not sleeper.done():
            sleeper.set_result(None)


async def _sleep_in(sleepers: set[asyncio.Future[None]]) -> None:
    sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    sleepers.add(sleeper)
    try:
        await sleeper
    finally:
        sleepers.discard(sleeper)


_process = Drain()


def drain_event() -> Drain:
    return _process
