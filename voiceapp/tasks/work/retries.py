"""Calls of a task that are made again while the server has no room for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from voiceapp.database.thread import DatabaseUnavailable
from voiceapp.errors import VoiceError

MOST_WAITS = 60
"""Attempts to get room before a call counts as refused."""


async def with_patience(call: Callable[[], Awaitable[Any]]) -> Any:
    """The result of a call that is made again while there is no room for it: no caller waits for it.

    Raises:
        VoiceError: what the call raises, a full lane or a reached rate only after many tries.
    """
    waits = 0
    while True:
        try:
            return await call()
        except DatabaseUnavailable:  # no fault of the work: it pauses until the database answers, or its time is over
            wait_s = 1.0
        except VoiceError as error:
            if error.code not in ("Throttling.Concurrency", "Throttling.RateQuota") or waits == MOST_WAITS:
                raise
            waits += 1
            wait_s = error.retry_after_s
        await asyncio.sleep(wait_s)
