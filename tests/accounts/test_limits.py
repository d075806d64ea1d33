"""Admission of conversations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from pytest_django import Settings

from voiceapp.accounts import limits
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.limits import SessionLimits, SessionRules
from voiceapp.errors import Throttled

RULES = SessionRules(
    total=100,
    per_account=3,
    guests_total=50,
    guests_per_address=2,
    guests_per_hour=5,
    lifetime_s=7200,
    guest_lifetime_s=180,
)
GUEST = Caller(account_id=9, workspace_id=9, key_id=None, user_id=None, is_guest=True, label="guest")


def member(account_id: int) -> Caller:
    return Caller(account_id=account_id, workspace_id=1, key_id=1, user_id=None, is_guest=False, label="member")


class House:
    """Limits with a clock that the test moves."""

    def __init__(self, **changes: int) -> None:
        self.now = 5000.0
        self.limits = SessionLimits(dataclasses.replace(RULES, **changes), clock=lambda: self.now)

    def refusal(self, caller: Caller, address: str = "192.0.2.1", elsewhere: Sequence[str] = ()) -> Throttled:
        before = self.limits.open_sessions
        with pytest.raises(Throttled) as refused:
            self.limits.admit(caller, address, elsewhere)
        assert self.limits.open_sessions == before, "a refusal takes no seat"
        assert refused.value.retry_after_s >= 1
        return refused.value


def test_it_admits_an_account_up_to_its_own_limit() -> None:
    house = House()
    seats = [house.limits.admit(member(1), "192.0.2.1") for _ in range(3)]
    refused = house.refusal(member(1))
    assert refused.code == "Throttling.Concurrency"
    assert "3 conversations open" in refused.message
    house.limits.admit(member(2), "192.0.2.1")

    seats[0].release()
    house.limits.admit(member(1), "192.0.2.1")
    house.refusal(member(1))


def test_it_admits_everybody_up_to_the_server_limit() -> None:
    house = House(total=2)
    house.limits.admit(member(1), "")
    seat = house.limits.admit(member(2), "")
    for caller in (member(3), GUEST):
        assert house.refusal(caller).code == "Throttling.Concurrency"
    seat.release()
    house.limits.admit(GUEST, "192.0.2.1")


def test_it_counts_a_seat_released_twice_once() -> None:
    house = House(per_account=1)
    seat = house.limits.admit(member(1), "")
    seat.release()
    seat.release()
    assert house.limits.open_sessions == 0
    house.limits.admit(member(1), "")
    house.refusal(member(1))


def test_it_frees_the_seat_of_a_conversation_that_failed() -> None:
    house = House(per_account=1)

    def talk_and_fail() -> None:
        with house.limits.admit(member(1), ""):
            assert house.limits.open_sessions == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        talk_and_fail()
    assert house.limits.open_sessions == 0


def test_it_admits_guests_of_one_address_up_to_their_limit() -> None:
    house = House()
    seat = house.limits.admit(GUEST, "192.0.2.1")
    house.limits.admit(GUEST, "192.0.2.1")
    assert house.refusal(GUEST).code == "Throttling.Concurrency"
    house.limits.admit(GUEST, "192.0.2.2")
    seat.release()
    house.limits.admit(GUEST, "192.0.2.1")


def test_it_counts_guests_of_one_ipv6_network_together() -> None:
    house = House()
    house.limits.admit(GUEST, "2001:db8::1")
    house.limits.admit(GUEST, "2001:db8::2")
    house.refusal(GUEST, "2001:db8::3")
    house.limits.admit(GUEST, "2001:db8:0:1::1")


def test_it_counts_guests_without_an_address_together() -> None:
    house = House()
    house.limits.admit(GUEST, "")
    house.limits.admit(GUEST, "")
    house.refusal(GUEST, "")


def test_it_holds_all_guests_to_a_limit_of_their_own() -> None:
    house = House(guests_total=2)
    house.limits.admit(GUEST, "192.0.2.1")
    house.limits.admit(GUEST, "192.0.2.2")
    assert house.refusal(GUEST, "192.0.2.3").code == "Throttling.Concurrency"
    house.limits.admit(member(1), "192.0.2.3")


def test_it_lets_guests_begin_five_times_in_any_hour() -> None:
    house = House()
    for _ in range(5):
        house.limits.admit(GUEST, "192.0.2.1").release()
        house.now += 60
    refused = house.refusal(GUEST)
    assert refused.code == "Throttling.RateQuota"
    assert refused.retry_after_s == 3600 - 5 * 60
    house.limits.admit(GUEST, "192.0.2.2").release()

    house.now += refused.retry_after_s - 1
    house.refusal(GUEST)
    house.now += 1
    house.limits.admit(GUEST, "192.0.2.1").release()
    house.refusal(GUEST)


def test_it_does_not_count_refused_guests_towards_the_hour() -> None:
    house = House(guests_per_address=1, guests_per_hour=2)
    seat = house.limits.admit(GUEST, "192.0.2.1")
    for _ in range(10):
        house.refusal(GUEST)
    seat.release()
    house.limits.admit(GUEST, "192.0.2.1")


def test_it_tells_a_guest_to_wait_when_guests_may_never_begin() -> None:
    assert House(guests_per_hour=0).refusal(GUEST).retry_after_s == 3600


def test_it_counts_what_other_processes_hold() -> None:
    house = House(guests_total=4)
    house.limits.admit(member(1), "192.0.2.1")
    assert house.refusal(member(1), elsewhere=["192.0.2.1", "192.0.2.2"]).code == "Throttling.Concurrency"
    house.limits.admit(member(1), "192.0.2.1", ["192.0.2.2"])

    house.limits.admit(GUEST, "2001:db8::1", ["2001:db8::2"])
    house.refusal(GUEST, "2001:db8::3", elsewhere=["2001:db8::2"])
    house.limits.admit(GUEST, "192.0.2.1", ["192.0.2.2"] * 2)
    house.refusal(GUEST, elsewhere=["192.0.2.2"] * 2)


def test_it_gives_guests_shorter_conversations() -> None:
    house = House()
    assert house.limits.admit(member(1), "").lifetime_s == 7200
    assert house.limits.admit(GUEST, "").lifetime_s == 180


def test_it_remembers_a_bounded_number_of_addresses() -> None:
    house = House()
    for number in range(limits.REMEMBERED_ADDRESSES + 500):
        house.limits.admit(GUEST, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}").release()
    assert house.limits.remembered_addresses == limits.REMEMBERED_ADDRESSES
    house.now += 3600
    house.limits.admit(GUEST, "192.0.2.1").release()
    assert house.limits.remembered_addresses == 1


def test_it_reads_its_rules_from_the_settings(settings: Settings) -> None:
    settings.MAX_SESSIONS, settings.MAX_SESSIONS_PER_ACCOUNT = 1, 2
    settings.GUEST_SESSIONS_TOTAL, settings.GUEST_SESSIONS_PER_ADDRESS, settings.GUEST_SESSIONS_PER_HOUR = 3, 4, 5
    settings.SESSION_LIFETIME_S, settings.GUEST_SESSION_S = 6, 7
    assert dataclasses.astuple(SessionRules.from_settings()) == (1, 2, 3, 4, 5, 6, 7)
