"""Seats of sessions: who gets one, and who is told to wait."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest
from pytest_django import Settings

from voiceapp.accounts import seats
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.rates import Rates
from voiceapp.accounts.seats import Check, Seat, Seats
from voiceapp.errors import Throttled
from voiceapp.load import AHEAD, Load

LIMITS = {
    "MAX_SESSIONS": 100,
    "MAX_SESSIONS_PER_ACCOUNT": 3,
    "GUEST_SESSIONS_TOTAL": 50,
    "GUEST_SESSIONS_PER_ADDRESS": 2,
    "GUEST_SESSIONS_PER_HOUR": 5,
    "SESSION_LIFETIME_S": 7200,
    "GUEST_SESSION_S": 180,
}
GUEST = Caller(account_id=9, workspace_id=9, key_id=None, user_id=None, is_guest=True, label="guest")


def member(account_id: int) -> Caller:
    return Caller(account_id=account_id, workspace_id=1, key_id=1, user_id=None, is_guest=False, label="member")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(seats, "LOOKS_AGAIN_S", (0.0, 0.0))
    monkeypatch.setattr(House, "settings", settings, raising=False)


class House:
    settings: ClassVar[Settings]

    def __init__(self, budget_ms: float = 0, **changes: int) -> None:
        for name, limit in (LIMITS | changes).items():
            setattr(self.settings, name, limit)
        self.now = 5000.0
        self.in_others: Sequence[str] = ()
        """Addresses of the sessions that other processes hold."""
        self.own: defaultdict[tuple[bool, int], list[str]] = defaultdict(list)
        self.looks = 0
        """How often the other processes were asked."""
        self.written_after = 0
        """After so many looks, the ends of those sessions are written."""
        self.begun = Rates(clock=lambda: self.now)
        self.load = Load(budget_ms, 1, clock=lambda: self.now)
        self.seats = Seats(
            load=self.load,
            shared=lambda: self,
            begun=self.begun,
            clock=lambda: self.now,
        )

    async def take(self, caller: Caller, address: str = "192.0.2.1", *, runs_here: bool = True) -> Seat:
        await self.seats.check(caller, address, runs_here=runs_here)
        seat = Seat(self.seats, caller, address, runs_here=runs_here)
        await seat.take()
        return seat

    async def refusal(self, caller: Caller, address: str = "192.0.2.1") -> Throttled:
        before = self.seats.open_sessions
        with pytest.raises(Throttled):
            await self.seats.check(caller, address)
        with pytest.raises(Throttled) as refused:
            await Seat(self.seats, caller, address).take()
        assert self.seats.open_sessions == before, "a refusal takes no seat"
        assert refused.value.retry_after_s >= 1
        return refused.value

    async def open_seats(self, caller: Caller) -> list[str]:
        """What all processes hold: each caller here calls from the address that it takes first."""
        self.looks += 1
        others = () if self.looks == self.written_after else self.in_others
        return [*others, *self.own[caller.is_guest, caller.account_id]]

    async def hold(self, caller: Caller, address: str, check: Check, agent: str = "") -> Callable[[], None]:
        check(await self.open_seats(caller))
        own = self.own[caller.is_guest, caller.account_id]
        own.append(address)
        return lambda: own.remove(address)


async def test_it_admits_an_account_up_to_its_own_limit() -> None:
    house = House()
    seats = [await house.take(member(1), "192.0.2.1") for _ in range(3)]
    refused = await house.refusal(member(1))
    assert refused.code == "Throttling.Concurrency"
    assert "3 conversations open" in refused.message
    await house.take(member(2), "192.0.2.1")

    seats[0].release()
    await house.take(member(1), "192.0.2.1")
    await house.refusal(member(1))


async def test_a_front_counts_its_callers_itself() -> None:
    house = House(MAX_SESSIONS_PER_ACCOUNT=1, MAX_SESSIONS=3)
    front = dataclasses.replace(member(1), is_front=True)
    for _ in range(3):
        await house.take(front)
    assert (await house.refusal(front)).http_status == 503


async def test_it_admits_everybody_up_to_the_server_limit() -> None:
    house = House(MAX_SESSIONS=2)
    await house.take(member(1), "")
    seat = await house.take(member(2), "")
    for caller in (member(3), GUEST):
        assert (await house.refusal(caller)).code == "Throttling.Concurrency"
    seat.release()
    await house.take(GUEST, "192.0.2.1")


async def test_measured_load_takes_places_as_others_do_but_not_those_of_sessions_of_other_services() -> None:
    house = House(budget_ms=1000)
    held = [await house.take(member(number), "") for number in range(AHEAD)]
    assert house.seats.room == 0
    assert (await house.refusal(member(9))).http_status == 503
    assert [house.seats.wait(member(number), "") for number in (20, 21)] == [1, 2]
    await house.take(member(9), "", runs_here=False)
    assert house.seats.room == 0
    held.pop().release()
    assert [house.seats.wait(member(number), "") for number in (20, 21)] == [0, 1]
    await house.refusal(member(9))
    await house.take(member(20), "")


async def test_it_counts_a_seat_released_twice_once() -> None:
    house = House(MAX_SESSIONS_PER_ACCOUNT=1)
    seat = await house.take(member(1), "")
    seat.release()
    seat.release()
    assert house.seats.open_sessions == 0
    await house.take(member(1), "")
    await house.refusal(member(1))


async def test_it_admits_guests_of_one_address_up_to_their_limit() -> None:
    house = House()
    seat = await house.take(GUEST, "192.0.2.1")
    await house.take(GUEST, "192.0.2.1")
    assert (await house.refusal(GUEST)).code == "Throttling.Concurrency"
    await house.take(GUEST, "192.0.2.2")
    seat.release()
    await house.take(GUEST, "192.0.2.1")


async def test_it_counts_guests_of_one_ipv6_network_together() -> None:
    house = House()
    await house.take(GUEST, "2001:db8::1")
    await house.take(GUEST, "2001:db8::2")
    await house.refusal(GUEST, "2001:db8::3")
    await house.take(GUEST, "2001:db8:0:1::1")


async def test_it_holds_all_guests_to_a_limit_of_their_own() -> None:
    house = House(GUEST_SESSIONS_TOTAL=2)
    await house.take(GUEST, "192.0.2.1")
    await house.take(GUEST, "192.0.2.2")
    assert (await house.refusal(GUEST, "192.0.2.3")).code == "Throttling.Concurrency"
    await house.take(member(1), "192.0.2.3")


async def test_it_lets_guests_begin_five_times_in_any_hour() -> None:
    house = House()
    for _ in range(5):
        (await house.take(GUEST, "192.0.2.1")).release()
        house.now += 60
    refused = await house.refusal(GUEST)
    assert refused.code == "Throttling.RateQuota"
    assert refused.retry_after_s == 3600 - 5 * 60
    (await house.take(GUEST, "192.0.2.2")).release()

    house.now += refused.retry_after_s - 1
    await house.refusal(GUEST)
    house.now += 1
    (await house.take(GUEST, "192.0.2.1")).release()
    await house.refusal(GUEST)


async def test_it_does_not_count_refused_guests_towards_the_hour() -> None:
    house = House(GUEST_SESSIONS_PER_ADDRESS=1, GUEST_SESSIONS_PER_HOUR=2)
    seat = await house.take(GUEST, "192.0.2.1")
    for _ in range(10):
        await house.refusal(GUEST)
    seat.release()
    await house.take(GUEST, "192.0.2.1")


async def test_a_guest_refused_for_what_other_processes_hold_keeps_no_other_out() -> None:
    house = House(GUEST_SESSIONS_PER_ADDRESS=1)
    house.in_others = ["192.0.2.1"]
    await house.refusal(GUEST, "192.0.2.1")
    await house.take(GUEST, "192.0.2.9")


async def test_it_counts_what_other_processes_hold() -> None:
    house = House(GUEST_SESSIONS_TOTAL=4)
    await house.take(member(1), "192.0.2.1")
    house.in_others = ["192.0.2.1", "192.0.2.2"]
    assert (await house.refusal(member(1))).code == "Throttling.Concurrency"
    house.in_others = ["192.0.2.2"]
    await house.take(member(1))

    house.in_others = ["2001:db8::2"]
    await house.take(GUEST, "2001:db8::1")
    await house.refusal(GUEST, "2001:db8::3")
    house.in_others = ["192.0.2.2"] * 2
    await house.take(GUEST)
    await house.refusal(GUEST)


async def test_it_looks_again_at_sessions_of_other_processes_that_may_just_have_ended() -> None:
    house = House(MAX_SESSIONS_PER_ACCOUNT=1)
    house.in_others = ["192.0.2.1"]
    house.written_after = 2
    await Seat(house.seats, member(1), "").take()
    assert (house.looks, house.seats.open_sessions) == (2, 1)


async def test_it_does_not_ask_other_processes_when_its_own_seats_are_taken() -> None:
    house = House(MAX_SESSIONS_PER_ACCOUNT=1)
    await house.take(member(1))
    house.looks = 0
    await house.refusal(member(1))
    assert house.looks == 0


async def test_it_takes_a_seat_once_and_forgets_one_that_was_never_taken() -> None:
    house = House()
    Seat(house.seats, member(1), "").release()
    seat = await house.take(member(1))
    await seat.take()
    assert house.seats.open_sessions == 1


async def test_it_gives_guests_shorter_conversations() -> None:
    house = House()
    assert (await house.take(member(1), "")).lifetime_s == 7200
    assert (await house.take(GUEST, "")).lifetime_s == 180


async def test_pages_wait_in_their_order_and_lose_a_place_that_they_do_not_ask_for() -> None:
    house = House(MAX_SESSIONS=1, MAX_SESSIONS_PER_ACCOUNT=9)
    seat = await house.take(member(1))
    assert [house.seats.wait(member(number), "") for number in (2, 3, 2)] == [1, 2, 1]
    seat.release()
    assert [house.seats.wait(member(number), "") for number in (2, 3)] == [0, 1]
    await house.refusal(member(4))  # nor may a program go before them
    await house.refusal(member(3))
    seat = await house.take(member(2))
    house.now += seats.PLACE_S / 2
    assert [house.seats.wait(member(number), "") for number in (5, 3)] == [2, 1]
    house.now += seats.PLACE_S * 0.6
    house.seats.wait(member(5), "")
    house.now += seats.PLACE_S * 0.6  # the tab of 3 is gone
    assert house.seats.wait(member(5), "") == 1
    seat.release()
    await house.take(member(5))


async def test_guests_who_wait_for_guests_keep_no_member_out() -> None:
    house = House(MAX_SESSIONS=3, GUEST_SESSIONS_TOTAL=1)
    seat = await house.take(GUEST, "192.0.2.1")
    others = [dataclasses.replace(GUEST, label=f"guest {number}") for number in range(5)]
    assert [house.seats.wait(other, "192.0.2.2") for other in others] == [1, 2, 0, 0, 0]  # two places of an address
    await house.take(member(1))
    seat.release()
    await house.refusal(others[1], "192.0.2.2")
    await house.take(others[0], "192.0.2.2")
    await house.take(member(1))
    assert house.seats.wait(member(2), "") == 1


def test_the_queue_is_bounded() -> None:
    house = House(MAX_SESSIONS=0)
    found = [house.seats.wait(member(number), "") for number in range(seats.MOST_PLACES + 1)]
    assert found == [*range(1, seats.MOST_PLACES + 1), 0]
