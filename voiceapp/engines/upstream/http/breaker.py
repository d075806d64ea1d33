"""A circuit breaker: whether another service is asked at all, out of how it answered. No I/O and no clock: the time
is an argument.

    closed     every request goes out; failures in a row open the circuit
    open       no request goes out until a time
    half-open  one request goes out as a trial: it closes the circuit, or opens it again for longer
"""

from __future__ import annotations

from enum import Enum

from voiceapp.errors import LocalProtocolError

MOST_FAILURES = 5
"""Failures in a row after which the circuit opens."""
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 30.0
"""The pause doubles with each trial that fails, from the first to the longest."""


class BreakerState(Enum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


BREAKER_STEPS: dict[tuple[BreakerState, str], BreakerState] = {
    (BreakerState.CLOSED, "trip"): BreakerState.OPEN,
    (BreakerState.OPEN, "try"): BreakerState.HALF_OPEN,
    (BreakerState.HALF_OPEN, "pass"): BreakerState.CLOSED,
    (BreakerState.HALF_OPEN, "fail"): BreakerState.OPEN,
    (BreakerState.HALF_OPEN, "give up"): BreakerState.OPEN,
}


class Breaker:
    """Circuit breaker of one service. Every request that `admit` lets out ends in `succeeded`, `failed` or `abandoned`,
    with its number; one that went out before the state changed no longer counts."""

    def __init__(self) -> None:
        self.state = BreakerState.CLOSED
        self._number = 1
        """Number of the requests since the state last changed."""
        self._failures = 0
        self._pause_s = FIRST_PAUSE_S
        self._paused_until = 0.0

    def wait_s(self, now: float) -> float:
        """Seconds until a request may go out; 0 when one may, and the shortest pause while a trial is out."""
        if self.state is BreakerState.OPEN:
            return max(0.0, self._paused_until - now)
        return 0.0 if self.state is BreakerState.CLOSED else FIRST_PAUSE_S

    def admit(self, now: float) -> int | None:
        """The number of a request that may go out now, as a trial after a pause; None when none may."""
        if self.wait_s(now) > 0:
            return None
        if self.state is BreakerState.OPEN:
            self._take("try")
        return self._number

    def succeeded(self, number: int) -> None:
        """The service answered a request, be it with a refusal."""
        if number != self._number:
            return
        self._failures = 0
        if self.state is BreakerState.HALF_OPEN:
            self._pause_s = FIRST_PAUSE_S
            self._take("pass")

    def failed(self, number: int, now: float) -> None:
        """The service did not answer a request, or failed itself."""
        if number != self._number:
            return
        self._failures += 1
        if self.state is BreakerState.HALF_OPEN:
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            self._take("fail")
            self._paused_until = now + self._pause_s
        elif self._failures >= MOST_FAILURES:
            self._take("trip")
            self._paused_until = now + self._pause_s

    def abandoned(self, number: int) -> None:
        """The caller of a request went away before the service answered: the next request is the trial."""
        if number == self._number and self.state is BreakerState.HALF_OPEN:
            self._take("give up")

    def _take(self, step: str) -> None:
        if (self.state, step) not in BREAKER_STEPS:
            raise LocalProtocolError(f"A circuit breaker that is {self.state.value} cannot take the step '{step}'.")
        self.state = BREAKER_STEPS[self.state, step]
        self._number += 1
