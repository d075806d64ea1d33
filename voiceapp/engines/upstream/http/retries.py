"""Retries of requests to another service. No I/O and no clock."""

from __future__ import annotations

from random import Random

from voiceapp.engines.openai.client import Busy, Unreachable
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout

MOST_RETRIES = 2
PATIENCE_S = 4.0
"""Time within which the last of them begins."""
FIRST_PAUSE_S = 0.1
RETRIES_PER_REQUEST = 0.1
"""Part of a retry that each request adds to the budget: under a lasting fault the service meets a tenth more requests,
not three times as many."""
MOST_SAVED = 10.0


class RetryBudget:
    """Budget of retries of one service; it begins full."""

    def __init__(self) -> None:
        self._saved = MOST_SAVED

    def add(self) -> None:
        """A request goes out for the first time."""
        self._saved = min(MOST_SAVED, self._saved + RETRIES_PER_REQUEST)

    def spend(self) -> bool:
        """Take a retry out of the budget; false if there is none."""
        if self._saved < 1:
            return False
        self._saved -= 1
        return True


def pause_s(error: EngineError, retries: int, *, is_repeatable: bool, random: Random) -> float | None:
    """Pause before a failed request is sent again; None when it is not sent again.

    A request that the service did not hear or did not take is sent again. A fault of the service is another matter: it
    may have done the work, so only what changes nothing there is repeated (`is_repeatable`). A request that took too
    long had its time.
    """
    if retries >= MOST_RETRIES or not error.retryable or isinstance(error, EngineRefused | EngineTimeout):
        return None
    backoff_s = FIRST_PAUSE_S * (1 << retries) * random.uniform(0.5, 1.5)
    if isinstance(error, Busy):
        return error.retry_after_s + backoff_s
    return backoff_s if is_repeatable or isinstance(error, Unreachable) else None
