"""An event loop on a thread of its own, for what serves a test from beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

PATIENCE_S = 30.0


class LoopThread:
    """A running loop. All methods may be called from any other thread, and return when the loop has done it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def call(self, action: Callable[[], object]) -> None:
        """Call a plain function in the loop's thread."""

        async def work() -> None:
            action()

        self.run(work())

    def close(self) -> None:
        """End the thread; its tasks have ended before."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()
