"""What follows from a receiver's answer: done, again later, or never again. No I/O; time and chance are arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum

RETRY_SCHEDULE: tuple[float, ...] = (10, 30, 60, 300, 1800, 7200, 18_000, 36_000, 86_400)
"""Seconds from one attempt to the next; there is one attempt more than steps."""
JITTER = 0.2
"""A step is so much shorter or longer by chance, lest what failed together come back together.

Where a receiver wishes to be left alone, it is longer only, and at most twice as long.
"""
MOST_CONSECUTIVE_FAILURES = 20
"""So many events in a row that finally failed end an endpoint …"""
LEAST_FAILING = timedelta(hours=1)
"""… but not before it has failed for this long: a short outage of a busy receiver is no end."""

_RETRIED = frozenset({408, 425, 429})


class Trouble(StrEnum):
    """Why there was no answer."""

    NETWORK = "NETWORK"
    TIMEOUT = "TIMEOUT"
    ADDRESS = "ADDRESS"
    """The guard refused to call there."""
    TLS = "TLS"
    """The certificate does not prove who answers."""


class Disable(StrEnum):
    """Why an endpoint is called no more (values of `disabled_reason`)."""

    GONE = "GONE"
    REDIRECT = "REDIRECT_RESPONSE"
    ADDRESS = "SSRF_VALIDATION_FAILED"
    TLS = "TLS_VALIDATION_FAILED"
    FAILURES = "CONSECUTIVE_DELIVERY_FAILURES"


class Next(StrEnum):
    """Where a delivery stands after an attempt (values of its `status`)."""

    SUCCEEDED = "SUCCEEDED"
    RETRY = "WAITING_RETRY"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt came to: an answer's status, or why there was none."""

    status: int | None = None
    trouble: Trouble | None = None
    retry_after: str = ""
    """The header of that name, as it came."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows."""

    next: Next
    wait_s: float = 0.0
    """Until the next attempt, when there is one."""
    disable: Disable | None = None
    """The endpoint is to be disabled at once, for this reason."""


def judge(
    outcome: Outcome,
    attempt_no: int,
    now: datetime,
    random: Callable[[], float],
    schedule: Sequence[float] = RETRY_SCHEDULE,
) -> Verdict:
    """What follows from attempt number `attempt_no`, counted from 1.

    `now` has a time zone; `random` gives numbers in [0, 1).
    """
    match outcome.trouble:
        case Trouble.ADDRESS:
            return Verdict(Next.FAILED, disable=Disable.ADDRESS)
        case Trouble.TLS:
            return Verdict(Next.FAILED, disable=Disable.TLS)
    status = outcome.status
    if status is not None:
        if 200 <= status < 300:
            return Verdict(Next.SUCCEEDED)
        if 300 <= status < 400:
            return Verdict(Next.FAILED, disable=Disable.REDIRECT)
        if status == 410:
            return Verdict(Next.FAILED, disable=Disable.GONE)
        if status < 500 and status not in _RETRIED:
            return Verdict(Next.FAILED)
    if attempt_no > len(schedule):
        return Verdict(Next.FAILED)
    step = schedule[max(attempt_no, 1) - 1]
    wished = _retry_after_s(outcome.retry_after, now)
    if wished is not None and wished > 0:
        least = min(max(wished, step), 2 * step)
        return Verdict(Next.RETRY, wait_s=least + min(2 * JITTER * step, 2 * step - least) * random())
    return Verdict(Next.RETRY, wait_s=step * (1 - JITTER + 2 * JITTER * random()))


def failed_too_long(consecutive_fail: int, first_fail_at: datetime | None, now: datetime) -> bool:
    """Whether an endpoint is to be disabled for its final failures in a row, the last one counted."""
    return (
        consecutive_fail >= MOST_CONSECUTIVE_FAILURES
        and first_fail_at is not None
        and now - first_fail_at >= LEAST_FAILING
    )


def _retry_after_s(header: str, now: datetime) -> float | None:
    """Seconds that the receiver wishes to be left alone; None without a wish that can be read."""
    header = header.strip()
    if header.isascii() and header.isdecimal():
        return float(header)
    try:
        at = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
