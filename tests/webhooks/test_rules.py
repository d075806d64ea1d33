"""The table of answers and what follows from them, by a clock and a chance of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings

from voiceapp.webhooks import rules
from voiceapp.webhooks.rules import FailureKind, Outcome, Verdict, failed_too_long
from voiceapp.webhooks.states import REASONS, DisabledReason

NOW = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)
SCHEDULE: Sequence[float] = settings.WEBHOOK_RETRY_SCHEDULE


def middle() -> float:
    """Chance that adds nothing."""
    return 0.5


def judge(
    outcome: Outcome,
    attempt_no: int,
    now: datetime = NOW,
    random: Callable[[], float] = middle,
    schedule: Sequence[float] = SCHEDULE,
) -> Verdict:
    return rules.judge(outcome, attempt_no, now, random, schedule)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_it_succeeds_with_any_2xx(status: int) -> None:
    assert judge(Outcome(status), 1) == Verdict("succeed")


@pytest.mark.parametrize(
    "outcome",
    [
        *(Outcome(status) for status in (408, 425, 429, 500, 502, 503, 504, 599)),
        Outcome(trouble=FailureKind.NETWORK),
        Outcome(trouble=FailureKind.TIMEOUT),
    ],
)
def test_it_tries_again_what_may_pass(outcome: Outcome) -> None:
    assert judge(outcome, 1) == Verdict("retry", wait_s=10.0)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 411, 413, 415, 418, 422, 426, 451, 499])
def test_it_gives_up_what_will_not_pass_and_leaves_the_endpoint_on(status: int) -> None:
    assert judge(Outcome(status), 1) == Verdict("fail")


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        *((Outcome(status), DisabledReason.REDIRECT) for status in (300, 301, 302, 303, 304, 307, 308, 399)),
        (Outcome(410), DisabledReason.GONE),
        (Outcome(trouble=FailureKind.ADDRESS), DisabledReason.ADDRESS),
        (Outcome(trouble=FailureKind.TLS), DisabledReason.TLS),
    ],
)
def test_it_disables_an_endpoint_that_must_not_be_called_again(outcome: Outcome, reason: DisabledReason) -> None:
    assert judge(outcome, 1) == Verdict("fail", disable=reason)


def test_the_reasons_are_spelled_as_on_the_wire() -> None:
    assert set(REASONS) == set(DisabledReason)
    assert {str(reason) for reason in DisabledReason} == {
        "MANUAL",
        "GONE",
        "REDIRECT_RESPONSE",
        "SSRF_VALIDATION_FAILED",
        "TLS_VALIDATION_FAILED",
        "CONSECUTIVE_DELIVERY_FAILURES",
    }


def test_it_keeps_to_the_schedule_by_a_fake_clock_and_ends() -> None:
    clock, at = NOW, []
    for attempt_no in range(1, 100):
        verdict = judge(Outcome(503), attempt_no, clock)
        if verdict.step == "fail":
            break
        clock += timedelta(seconds=verdict.wait_s)
        at.append(round((clock - NOW).total_seconds()))

    assert at == [10, 40, 100, 400, 2200, 9400, 27_400, 63_400, 149_800]
    assert attempt_no == len(SCHEDULE) + 1
    assert verdict == Verdict("fail")


def test_an_operator_may_cut_the_schedule() -> None:
    assert judge(Outcome(503), 1, schedule=(7,)).wait_s == pytest.approx(7)
    assert judge(Outcome(503), 2, schedule=(7,)) == Verdict("fail")
    assert judge(Outcome(503), 1, schedule=()) == Verdict("fail")


@pytest.mark.parametrize(("chance", "wait_s"), [(0.0, 24), (0.25, 27), (0.5, 30), (0.75, 33), (0.999999, 36)])
def test_a_step_is_a_fifth_shorter_or_longer_by_chance(chance: float, wait_s: float) -> None:
    assert judge(Outcome(503), 2, NOW, lambda: chance).wait_s == pytest.approx(wait_s, abs=0.01)


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ("1", 30),
        ("29", 30),
        ("45", 45),
        (" 45 ", 45),
        ("61", 60),
        ("9" * 5000, 60),
        ("Sun, 01 Nov 2026 12:00:50 GMT", 50),
        ("Sun, 01 Nov 2026 12:00:50 -0000", 50),
        ("Sun, 01 Nov 2026 14:00:50 +0200", 50),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 60),
    ],
)
def test_retry_after_is_heard_from_one_step_to_two(header: str, wait_s: float) -> None:
    for status in (429, 503):
        assert judge(Outcome(status, retry_after=header), 2, NOW, lambda: 0.0).wait_s == wait_s


@pytest.mark.parametrize(("header", "wait_s"), [("1", 42), ("45", 57), ("55", 60), ("61", 60)])
def test_what_is_left_alone_together_comes_back_apart(header: str, wait_s: float) -> None:
    latest = judge(Outcome(503, retry_after=header), 2, NOW, lambda: 0.999999).wait_s
    assert latest == pytest.approx(wait_s, abs=0.01)
    assert latest <= 60


@pytest.mark.parametrize(
    "header",
    [
        "0",
        "Sun, 01 Nov 2026 11:00:00 GMT",
        "",
        "soon",
        "-5",
        "1.5",
        "٣",
        "Sun, 99 Nov 2026 12:00:50 GMT",
        "\x00",
        "Sun,",
    ],
)
def test_retry_after_that_says_nothing_leaves_the_schedule(header: str) -> None:
    assert judge(Outcome(503, retry_after=header), 2).wait_s == pytest.approx(30)


@pytest.mark.parametrize(
    ("failures", "failing_for", "disabled"),
    [
        (20, timedelta(hours=1), True),
        (500, timedelta(days=3), True),
        (19, timedelta(days=3), False),
        (20, timedelta(minutes=59, seconds=59), False),
        (5000, timedelta(minutes=10), False),
    ],
)
def test_it_takes_twenty_failures_in_a_row_and_an_hour(failures: int, failing_for: timedelta, disabled: bool) -> None:
    assert failed_too_long(failures, NOW - failing_for, NOW) is disabled


def test_an_endpoint_that_never_failed_is_left_on() -> None:
    assert failed_too_long(0, None, NOW) is False
