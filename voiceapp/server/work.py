"""Where the work that outlives its request is done: which lines there are, and the thread that works on them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from voiceapp.leases.loop import STOP_S, Line, Loop
from voiceapp.leases.wake import Ear, on_wake
from voiceapp.tasks.line import TaskLine
from voiceapp.webhooks.line import DeliveryLine

logger = logging.getLogger(__name__)


def lines() -> Sequence[Line]:
    """The lines of this installation."""
    return (TaskLine(), DeliveryLine())


@contextmanager
def woken(listener: Callable[[str], None]) -> Iterator[None]:
    """Within the block, the listener is told the names of lines on which there is work, from any thread."""
    forget = on_wake(listener)
    ear = Ear(listener)
    ear.start()
    try:
        yield
    finally:
        forget()
        ear.stop()


def run_loop(loop: Loop) -> None:
    """Work on an event loop of its own until the loop is stopped. Fit for a thread."""
    with woken(loop.wake):
        asyncio.run(loop.run())


class EmbeddedWork:
    """The loop in a thread of the serving process: its event loop carries no audio."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._thread = threading.Thread(target=run_loop, args=(loop,), name="work", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Claim nothing more, end or give back what runs. Blocks for a few seconds at most."""
        self._loop.stop()
        if self._thread.is_alive():
            self._thread.join(STOP_S + 2.0)
