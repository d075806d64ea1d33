"""The circuit breaker, with a clock that stands still unless it is moved."""

from __future__ import annotations

import pytest

from voiceapp.engines.upstream.http.breaker import (
    BREAKER_STEPS,
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    MOST_FAILURES,
    Breaker,
    BreakerState,
)


class Circuit:
    """A breaker and the clock that it is told."""

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.now = 1000.0

    def fail(self, times: int = 1) -> None:
        for _ in range(times):
            number = self.breaker.admit(self.now)
            assert number is not None
            self.breaker.failed(number, self.now)

    def trial(self) -> int:
        """The number of the request that goes out when the pause is over."""
        self.now += self.breaker.wait_s(self.now)
        number = self.breaker.admit(self.now)
        assert number is not None
        return number


@pytest.fixture
def circuit() -> Circuit:
    return Circuit()


@pytest.fixture
def opened(circuit: Circuit) -> Circuit:
    circuit.fail(MOST_FAILURES)
    return circuit


def test_failures_in_a_row_open_it(circuit: Circuit) -> None:
    circuit.fail(MOST_FAILURES - 1)
    assert circuit.breaker.state is BreakerState.CLOSED
    circuit.fail()
    assert circuit.breaker.state is BreakerState.OPEN
    assert circuit.breaker.admit(circuit.now) is None
    assert circuit.breaker.wait_s(circuit.now) == FIRST_PAUSE_S


def test_a_success_between_failures_keeps_it_closed(circuit: Circuit) -> None:
    for _ in range(3):
        circuit.fail(MOST_FAILURES - 1)
        circuit.breaker.succeeded(circuit.trial())
    assert circuit.breaker.state is BreakerState.CLOSED


def test_after_the_pause_one_request_goes_out_and_closes_it(opened: Circuit) -> None:
    opened.now += FIRST_PAUSE_S - 0.01
    assert opened.breaker.admit(opened.now) is None
    number = opened.trial()
    assert opened.breaker.state is BreakerState.HALF_OPEN
    assert opened.breaker.admit(opened.now) is None
    opened.breaker.succeeded(number)
    assert opened.breaker.state is BreakerState.CLOSED


def test_each_trial_that_fails_doubles_the_pause(opened: Circuit) -> None:
    pauses = []
    for _ in range(7):
        opened.breaker.failed(opened.trial(), opened.now)
        pauses.append(opened.breaker.wait_s(opened.now))
    assert pauses == [4.0, 8.0, 16.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    opened.breaker.succeeded(opened.trial())
    opened.fail(MOST_FAILURES)
    assert opened.breaker.wait_s(opened.now) == FIRST_PAUSE_S


def test_a_trial_whose_caller_left_is_left_to_the_next_request(opened: Circuit) -> None:
    opened.breaker.abandoned(opened.trial())
    assert opened.breaker.state is BreakerState.OPEN
    opened.breaker.succeeded(opened.trial())
    assert opened.breaker.state is BreakerState.CLOSED


def test_requests_from_before_the_circuit_opened_count_no_more(circuit: Circuit) -> None:
    late = [number for _ in range(3) if (number := circuit.breaker.admit(circuit.now)) is not None]
    circuit.fail(MOST_FAILURES)
    trial = circuit.trial()
    circuit.breaker.succeeded(late[0])
    circuit.breaker.failed(late[1], circuit.now)
    circuit.breaker.abandoned(late[2])
    assert circuit.breaker.state is BreakerState.HALF_OPEN
    circuit.breaker.succeeded(trial)
    assert circuit.breaker.state is BreakerState.CLOSED


def test_the_table_leads_from_every_state_to_every_other_in_the_end() -> None:
    assert {state for state, _ in BREAKER_STEPS} == set(BREAKER_STEPS.values()) == set(BreakerState)
