"""Waiting for what a logger of this process says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

PATIENCE_S = 60.0


class _Listening(logging.Handler):
    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part
        self._loop = asyncio.get_running_loop()
        self.heard = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self._part in record.getMessage():
            self._loop.call_soon_threadsafe(self.heard.set)


@asynccontextmanager
async def logged(name: str, part: str) -> AsyncIterator[None]:
    """What the block does is done when the logger of this name has said this, from whatever thread."""
    listening = _Listening(part)
    logger = logging.getLogger(name)
    logger.addHandler(listening)
    try:
        yield
        async with asyncio.timeout(PATIENCE_S):
            await listening.heard.wait()
    finally:
        logger.removeHandler(listening)
