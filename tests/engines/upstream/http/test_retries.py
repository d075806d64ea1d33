"""Which failed requests are sent again, and after how long."""

from __future__ import annotations

from random import Random

import pytest

from voiceapp.engines.openai.client import Busy, Unreachable
from voiceapp.engines.upstream.http.retries import MOST_RETRIES, MOST_SAVED, RetryBudget, pause_s
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable

FAULT = EngineUnavailable("It failed with status 500.")
WRONG_KEY = EngineUnavailable("It refused the key of this server.")
WRONG_KEY.retryable = False


def busy(retry_after_s: int) -> Busy:
    error = Busy("It is busy.")
    error.retry_after_s = retry_after_s
    return error


@pytest.mark.parametrize(
    ("error", "is_repeatable", "is_sent_again"),
    [
        (Unreachable("It cannot be reached."), False, True),
        (busy(2), False, True),
        (FAULT, True, True),
        (FAULT, False, False),
        (WRONG_KEY, True, False),
        (EngineTimeout("It took too long."), True, False),
        (EngineRefused("It refused the request."), True, False),
    ],
)
def test_it_repeats_what_did_nothing_there(error: EngineError, is_repeatable: bool, is_sent_again: bool) -> None:
    found = pause_s(error, 0, is_repeatable=is_repeatable, random=Random(1))
    assert (found is not None) is is_sent_again


def test_it_repeats_a_request_so_often_and_no_more() -> None:
    error = Unreachable("It cannot be reached.")
    assert pause_s(error, MOST_RETRIES - 1, is_repeatable=True, random=Random(1)) is not None
    assert pause_s(error, MOST_RETRIES, is_repeatable=True, random=Random(1)) is None


def test_pauses_are_spread_and_grow() -> None:
    error = Unreachable("It cannot be reached.")
    first = {pause_s(error, 0, is_repeatable=True, random=Random(seed)) for seed in range(50)}
    second = {pause_s(error, 1, is_repeatable=True, random=Random(seed)) for seed in range(50)}
    assert len(first) == 50
    assert all(found is not None and 0.05 <= found <= 0.15 for found in first)
    assert all(found is not None and 0.1 <= found <= 0.3 for found in second)


def test_a_busy_service_is_left_alone_for_as_long_as_it_says() -> None:
    found = pause_s(busy(3), 0, is_repeatable=False, random=Random(1))
    assert found is not None
    assert 3.0 < found < 3.2


def test_the_budget_allows_one_retry_for_ten_requests_in_the_long_run() -> None:
    budget = RetryBudget()
    assert sum(budget.spend() for _ in range(100)) == MOST_SAVED
    retries = 0
    for _ in range(200):
        budget.add()
        retries += budget.spend()
    assert 18 <= retries <= 20
