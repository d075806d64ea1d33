"""The time that a request may wait for the database, in all: for a thread, a connection, a lock, a reply.

`server/front.py` opens one `Patience` when a request arrives, a context variable carries it to every wait, and each
wait takes from it as long as it lasts. What a request does meanwhile, such as asking a model, costs nothing. It holds
until the response begins: then no 503 can be sent any more, and what is left to write down is written as patiently as
by work in the background, which has no `Patience` at all.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from django.db import OperationalError


class Patience:
    """So many seconds of waiting; waits at the same time, by one thread for another, count once."""

    def __init__(
        self, wait_s: float, *, outer: Patience | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._left_s = wait_s
        self._outer = outer
        self._clock = clock
        self._guard = threading.Lock()
        self._waits = 0
        self._since = 0.0
        self._is_lifted = False
        self._deadline: asyncio.Timeout | None = None

    @property
    def is_lifted(self) -> bool:
        return self._is_lifted

    @property
    def left_s(self) -> float | None:
        """Seconds left before the deadline, at least 0; None without a deadline."""
        outer_s = None if self._outer is None else self._outer.left_s
        if self._is_lifted:
            return outer_s
        with self._guard:
            running_s = self._clock() - self._since if self._waits else 0.0
            own_s = max(0.0, self._left_s - running_s)
        return own_s if outer_s is None else min(own_s, outer_s)

    def lift(self) -> None:
        """Wait without a limit from now on. Call it on the event loop that holds the deadline."""
        self._is_lifted = True
        if self._deadline is not None:
            self._deadline.reschedule(None)
        if self._outer is not None:
            self._outer.lift()

    def end(self) -> None:
        """It is over; an outer one stays as it is."""
        self._is_lifted = True

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """All that the block does is taken for waiting, until the patience is lifted.

        Raises:
            OperationalError: if it takes longer than it may.
        """
        try:
            async with asyncio.timeout(self.left_s) as self._deadline:
                try:
                    yield
                finally:
                    deadline, self._deadline = self._deadline, None
        except TimeoutError:
            if deadline.expired():
                raise OperationalError("the database did not respond in time") from None
            raise

    @contextmanager
    def waiting(self) -> Iterator[None]:
        if self._outer is not None:
            with self._outer.waiting(), self._counting():
                yield
        else:
            with self._counting():
                yield

    @contextmanager
    def _counting(self) -> Iterator[None]:
        with self._guard:
            if not self._waits:
                self._since = self._clock()
            self._waits += 1
        try:
            yield
        finally:
            with self._guard:
                self._waits -= 1
                if not self._waits:
                    self._left_s -= self._clock() - self._since


_current: ContextVar[Patience | None] = ContextVar("patience", default=None)


def current() -> Patience | None:
    """That of the request at hand; None in the background."""
    return _current.get()


@contextmanager
def waits_at_most(wait_s: float) -> Iterator[Patience]:
    """Until the end of the block, and in all that it begins, the database is waited for this long in all.

    Within a request, what is waited is taken from that request's patience as well, and cannot exceed it. What was begun
    in the block and goes on after it is work in the background.
    """
    outer = _current.get()
    patience = Patience(wait_s, outer=outer)
    token = _current.set(patience)
    try:
        yield patience
    finally:
        _current.reset(token)
        patience.end()


@contextmanager
def waiting() -> Iterator[float | None]:
    """The block waits for the database: how long it may, None for as long as it takes."""
    patience = _current.get()
    if patience is None:
        yield None
        return
    with patience.waiting():
        yield patience.left_s
