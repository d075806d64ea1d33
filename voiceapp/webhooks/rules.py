"""Verdicts on a receiver's response: done, again later, or never again. No I/O; time and chance are arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Literal

from voiceapp.webhooks.states import DisabledReason

JITTER = 0.2
"""A wait is so much shorter or longer by chance, lest what failed together come back together.

Where a receiver asks to be left alone, it is longer only, and at most twice as long.
"""
MOST_CONSECUTIVE_FAILURES = 20
"""So many events in a row that finally failed end an endpoint …"""
LEAST_FAILING = timedelta(hours=1)
"""… but not before it has failed for this long: a short outage of a busy receiver is not enough."""

_RETRIED = frozenset({408, 425, 429})


class FailureKind(StrEnum):
    """Reasons why no response came."""

    NETWORK = "NETWORK"
    TIMEOUT = "TIMEOUT"
    ADDRESS = "ADDRESS"
    """The guard refused to call there."""
    TLS = "TLS"
    """The certificate of the receiver could not be verified."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt: the status of the response, or why none came."""

    status: int | None = None
    trouble: FailureKind | None = None
    retry_after: str = ""
    """The header of that name, as it came."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Consequence of one attempt for its delivery and endpoint."""

    step: Literal["succeed", "retry", "fail"]
    """The delivery's step (`voiceapp.webhooks.states.DELIVERY_STEPS`)."""
    wait_s: float = 0.0
    """Time until the next attempt, when there is one."""
    disable: DisabledReason | None = None


def judge(
    outcome: Outcome,
    attempt_no: int,
    now: datetime,
    random: Callable[[], float],
    schedule: Sequence[float],
) -> Verdict:
    """Return the verdict on attempt number `attempt_no`, counted from 1.

    `now` has a time zone; `random` gives numbers in [0, 1). `schedule` holds the seconds from one attempt to the next;
    there is one attempt more than waits.
    """
    match outcome.trouble:
        case FailureKind.ADDRESS:
            return Verdict("fail", disable=DisabledReason.ADDRESS)
        case FailureKind.TLS:
            return Verdict("fail", disable=DisabledReason.TLS)
    status = outcome.status
    if status is not None:
        if 200 <= status < 300:
            return Verdict("succeed")
        if 300 <= status < 400:
            return Verdict("fail", disable=DisabledReason.REDIRECT)
        if status == 410:
            return Verdict("fail", disable=DisabledReason.GONE)
        if status < 500 and status not in _RETRIED:
            return Verdict("fail")
    if attempt_no > len(schedule):
        return Verdict("fail")
    wait_s = schedule[max(attempt_no, 1) - 1]
    asked_s = _retry_after_s(outcome.retry_after, now)
    if asked_s is not None and asked_s > 0:
        least = min(max(asked_s, wait_s), 2 * wait_s)
        return Verdict("retry", wait_s=least + min(2 * JITTER * wait_s, 2 * wait_s - least) * random())
    return Verdict("retry", wait_s=wait_s * (1 - JITTER + 2 * JITTER * random()))


def failed_too_long(consecutive_fail: int, first_fail_at: datetime | None, now: datetime) -> bool:
    """Return whether an endpoint is to be disabled for its final failures in a row, the last one included."""
    return (
        consecutive_fail >= MOST_CONSECUTIVE_FAILURES
        and first_fail_at is not None
        and now - first_fail_at >= LEAST_FAILING
    )


def _retry_after_s(header: str, now: datetime) -> float | None:
    """Seconds that the receiver asks to be left alone; None without a request that can be read."""
    header = header.strip()
    if header.isascii() and header.isdecimal():
        return float(header)
    try:
        at = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
