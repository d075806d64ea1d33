"""How many sessions a process may hold, by what turns wait: virtual time, two voice threads, a budget of 1 s."""

from __future__ import annotations

import pytest

from voiceapp.load import AHEAD, GROWTH_PER_S, Load

THREADS = 2
AT_ONCE = AHEAD * THREADS


class Machine:
    """One on which turns wait 0.1 s while as many talk as it `carries`, and a second with half as many again."""

    def __init__(self, carries: int, budget_ms: float = 1000) -> None:
        self.now = 0.0
        self.carries = carries
        self.load = Load(budget_ms, THREADS, clock=lambda: self.now)
        self.begun: list[float] = []
        """When each open session began; it talks after four seconds."""

    @property
    def wait_s(self) -> float:
        return 0.1 * (sum(self.now - at >= 4 for at in self.begun) / self.carries) ** 6

    def run(self, seconds: float, *, is_wanted: bool = False) -> None:
        """Live through so much time, in which, where it `is_wanted`, a caller tries to begin ten times a second."""
        for step in range(round(seconds * 10)):
            self.now += 0.1
            if step % 5 == 0:
                self.load.loop_waited(0.001)
            self.load.voice_waited(self.wait_s)
            if is_wanted:
                self.begin()

    def begin(self) -> bool:
        if has_room := self.load.most_sessions(len(self.begun)) > len(self.begun):
            self.begun.append(self.now)
        return has_room


@pytest.mark.parametrize("carries", [8, 12, 20, 28])
def test_of_many_it_admits_a_few_at_once_and_then_as_many_as_the_machine_carries(carries: int) -> None:
    machine = Machine(carries)
    machine.run(3)
    assert [machine.begin() for _ in range(64)].count(True) == AT_ONCE
    machine.run(100, is_wanted=True)
    assert carries <= len(machine.begun) <= carries + 2
    machine.run(5)
    assert not machine.begin()


def test_it_goes_on_admitting_while_callers_hardly_speak() -> None:
    machine = Machine(carries=1000)
    machine.run(60, is_wanted=True)
    assert len(machine.begun) == pytest.approx(AT_ONCE + 60 * THREADS * GROWTH_PER_S, abs=2)


def test_it_admits_again_when_turns_wait_less_and_always_one_for_each_thread() -> None:
    machine = Machine(carries=12)
    machine.run(60, is_wanted=True)
    machine.carries = 8  # another program takes a part of the machine
    machine.run(5)
    machine.begun.pop()
    assert not machine.begin(), "in the place of one who left, although turns wait too long"
    del machine.begun[6:]
    machine.run(4)
    assert machine.begin()
    machine.carries = 1
    machine.run(5)
    assert not machine.begin()
    machine.begun.clear()
    assert [machine.begin() for _ in range(3)] == [True] * THREADS + [False]


def test_what_a_server_measured_while_it_warmed_up_is_forgotten() -> None:
    machine = Machine(carries=20)
    for _ in range(9):
        machine.load.voice_waited(5)
    assert machine.load.most_sessions(0) == THREADS
    machine.load.forget()
    assert machine.load.most_sessions(0) == AT_ONCE


def test_a_late_event_loop_is_load_and_one_that_stands_still_is_not_idle() -> None:
    machine = Machine(carries=1000)
    for lag_s, limit in ((0.05, AT_ONCE), (0.4, 5)):
        for _ in range(6):
            machine.now += 0.5
            machine.load.loop_waited(lag_s)
        assert machine.load.most_sessions(5) == limit
    for _ in range(2):
        machine.now += 100
        assert machine.load.most_sessions(5) == 5
    machine.run(3)
    assert machine.load.most_sessions(5) > 5


@pytest.mark.parametrize(("waits", "budget_ms", "is_full"), [(1, 1000, False), (9, 1000, True), (9, 0, False)])
def test_one_long_wait_is_no_load_and_without_a_budget_none_is(waits: int, budget_ms: float, is_full: bool) -> None:
    machine = Machine(20, budget_ms)
    machine.load.loop_waited(0)
    for _ in range(waits):
        machine.load.voice_waited(0.6)
    assert [machine.begin() for _ in range(3)] == [True, True, not is_full]
