"""One clock for all calls: every 20 ms each of them sends its next packet."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from voiceapp.event_loops import per_loop

logger = logging.getLogger(__name__)

PERIOD_S = 0.02
BEHIND_TICKS = 5
"""So many missed ticks are made up for at once; the listener's jitter buffer takes them. Older ones are skipped."""

Tick = Callable[[int], None]


class Ticker:
    """Calls all that joined, in the order of joining. Runs only while there is one.

    Belongs to one event loop.
    """

    def __init__(self) -> None:
        self._everybody: dict[Tick, None] = {}
        self._running: asyncio.Task[None] | None = None

    @property
    def is_resting(self) -> bool:
        return self._running is None

    def join(self, tick: Tick) -> None:
        """Call `tick(n)` from now on, with the number of periods since the last call: 1, unless time was lost."""
        self._everybody[tick] = None
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run(), name="ticker of the media tracks")

    def leave(self, tick: Tick) -> None:
        """Call it no more; harmless when it left already."""
        self._everybody.pop(tick, None)
        if not self._everybody and self._running is not None:
            self._running.cancel()
            self._running = None

    async def _run(self) -> None:
        now = asyncio.get_running_loop().time
        due = now()
        while True:
            due += PERIOD_S
            delay = due - now()
            if delay > 0:
                await asyncio.sleep(delay)
            behind = int((now() - due) / PERIOD_S)
            skipped = max(0, behind - BEHIND_TICKS)
            due += skipped * PERIOD_S
            for tick in tuple(self._everybody):
                try:
                    tick(1 + skipped)
                except Exception:  # one call's fault must not silence the others
                    logger.exception("a call's clock failed and stops")
                    self._everybody.pop(tick, None)
            if delay <= 0:
                await asyncio.sleep(0)


ticker = per_loop(Ticker)
"""The clock of the running event loop: one in a server process."""
