"""Seats of sessions that another service holds, and what processes learn of reports that came to another one."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from tests.conftest import Member
from tests.realtime.test_models import begin
from voiceapp.accounts.caller import Caller
from voiceapp.accounts.seats import Seat, SeatRules, Seats
from voiceapp.realtime.close_codes import ABANDONED
from voiceapp.realtime.forwarded_seats import ForwardedSeats
from voiceapp.realtime.models import RealtimeSession

pytestmark = pytest.mark.django_db(transaction=True)

CALLER = Caller(account_id=1, workspace_id=1, key_id=1, user_id=None, is_guest=False, label="member")
PATIENCE_S = 20.0


class House:
    def __init__(self, *, lifetime_s: int = 7200, listening_for: timedelta = timedelta(hours=1)) -> None:
        rules = SeatRules(100, 100, 100, 100, 100, lifetime_s=lifetime_s, guest_lifetime_s=lifetime_s)
        self.seats = Seats(rules)
        self.forwarded = ForwardedSeats(period_s=0.02, listening_since=timezone.now() - listening_for)

    async def hold(self, session_id: str) -> Seat:
        seat = self.seats.seat(CALLER, "")
        await seat.take()
        self.forwarded.hold(session_id, seat, is_guest=False)
        return seat

    async def wait_for(self, open_sessions: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.seats.open_sessions != open_sessions:
            assert time.monotonic() < deadline, f"{self.seats.open_sessions} seats are still held"
            await asyncio.sleep(0.02)


@pytest.fixture
def row(alice: Member) -> RealtimeSession:
    return begin(alice, transport="relayed", served_by="")


async def test_a_session_that_ended_before_another_process_gives_its_seat_back(row: RealtimeSession) -> None:
    house = House()
    await house.hold(row.pk)
    await house.hold("sess_of_no_row")
    await RealtimeSession.objects.filter(pk=row.pk).aupdate(ended_at=timezone.now(), close_code=1000)
    await house.wait_for(1)
    house.forwarded.close()
    assert house.seats.open_sessions == 0


async def test_a_session_that_is_reported_no_more_is_over(row: RealtimeSession) -> None:
    house = House()
    silent_since = timezone.now() - timedelta(seconds=151)
    await RealtimeSession.objects.filter(pk=row.pk).aupdate(reported_at=silent_since)
    await house.hold(row.pk)
    await house.wait_for(0)
    await sync_to_async(row.refresh_from_db)()
    assert (row.ended_at, row.close_code) == (silent_since, ABANDONED)


async def test_silence_before_anybody_listened_ends_no_session(row: RealtimeSession, alice: Member) -> None:
    house = House(listening_for=timedelta(seconds=149))
    await RealtimeSession.objects.filter(pk=row.pk).aupdate(reported_at=timezone.now() - timedelta(seconds=151))
    await house.hold(row.pk)
    over = await sync_to_async(begin)(alice, transport="relayed", served_by="", ended_at=timezone.now())
    await house.hold(over.pk)
    await house.wait_for(1)  # it has looked: what is over has given its seat back
    await sync_to_async(row.refresh_from_db)()
    assert row.ended_at is None
    house.forwarded.close()


async def test_a_session_whose_seat_is_held_begins_when_all_others_have_ended(row: RealtimeSession) -> None:
    house = House()
    await house.hold("sess_first")
    house.forwarded.release("sess_first")
    await house.hold(row.pk)  # in the same moment: it is looked after as well
    await RealtimeSession.objects.filter(pk=row.pk).aupdate(ended_at=timezone.now(), close_code=1000)
    await house.wait_for(0)


async def test_no_session_holds_a_seat_for_longer_than_it_may_last(row: RealtimeSession) -> None:
    house = House(lifetime_s=1)
    await RealtimeSession.objects.filter(pk=row.pk).aupdate(reported_at=timezone.now())
    await house.hold(row.pk)
    house.forwarded.connected(row.pk)
    assert house.seats.open_sessions == 1
    await house.wait_for(0)
