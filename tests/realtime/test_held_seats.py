"""Seats count over all processes, exactly; those of processes that are gone do not count."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from threading import Barrier, BrokenBarrierError

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.seats import seats
from voiceapp.errors import Throttled
from voiceapp.realtime.held_seats import HeldSeats
from voiceapp.realtime.lifetime.processes import own_name
from voiceapp.realtime.models import HeldSeat, RealtimeSession, ServerProcess

pytestmark = pytest.mark.django_db(transaction=True)

OTHER_HOST, GONE = "another-host:1:x", "third-host:1:x"
LIMIT, ASKING = 2, 4


def caller(member: Member, *, is_guest: bool = False) -> Caller:
    return Caller(
        account_id=member.account.pk,
        workspace_id=member.workspace.pk,
        key_id=None if is_guest else member.row.pk,
        user_id=None,
        is_guest=is_guest,
        label="somebody",
    )


async def held(member: Member, held_by: str, address: str, *, is_guest: bool = False) -> None:
    await HeldSeat.objects.acreate(
        id=f"{held_by[:20]}{address}",
        account=member.account,
        is_guest=is_guest,
        client_address=address,
        held_by=held_by,
    )


async def until_deleted() -> None:
    """Until no row is left: they are deleted beside what follows."""
    async with asyncio.timeout(60):
        while await HeldSeat.objects.aexists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_seats_of_all_processes_count_but_of_those_whose_lease_is_over(alice: Member, charlie: Member) -> None:
    for number, (held_by, left_s) in enumerate([(own_name(), 60), (OTHER_HOST, 60), (GONE, -1)], start=1):
        until = Now() + timedelta(seconds=left_s)
        await ServerProcess.objects.acreate(name=held_by, held_since=Now(), lease_until=until)
        await held(alice, held_by, f"192.0.2.{number}")
    await held(charlie, OTHER_HOST, "192.0.2.9", is_guest=True)
    assert sorted(await HeldSeats().open_seats(caller(alice))) == ["192.0.2.1", "192.0.2.2"]
    assert await HeldSeats().open_seats(caller(charlie)) == []
    assert await HeldSeats().open_seats(caller(charlie, is_guest=True)) == ["192.0.2.9"]
    assert await HeldSeats().open_seats(caller(alice, is_guest=True)) == []  # guests of another site


@pytest.mark.parametrize(
    ("began_s_ago", "reported_s_ago", "ended", "counts", "of_a_guest"),
    [
        (5, None, False, True, True),
        (599, None, False, True, False),  # a guest may talk for 300 s
        (601, None, False, False, False),
        (299, None, False, True, True),
        (900, 149, False, True, False),
        (900, 151, False, False, False),
        (1001, 5, False, False, False),
        (5, 5, True, False, False),
    ],
)
async def test_a_session_that_another_service_holds_counts_by_its_reports(
    alice: Member,
    settings: Settings,
    began_s_ago: int,
    reported_s_ago: int | None,
    ended: bool,
    counts: bool,
    of_a_guest: bool,
) -> None:
    settings.SESSION_LIFETIME_S, settings.GUEST_SESSION_S = 1000, 300
    seats.cache_clear()
    now = timezone.now()
    for is_guest in (False, True):
        await RealtimeSession.objects.acreate(
            account=alice.account,
            workspace=alice.workspace,
            is_guest=is_guest,
            model="upstream",
            transport="relayed",
            client_address="192.0.2.1",
            started_at=now - timedelta(seconds=began_s_ago),
            reported_at=None if reported_s_ago is None else now - timedelta(seconds=reported_s_ago),
            ended_at=now if ended else None,
        )
    for is_guest, expected in ((False, counts), (True, of_a_guest)):
        found = await HeldSeats().open_seats(caller(alice, is_guest=is_guest))
        assert found == (["192.0.2.1"] if expected else []), is_guest


def test_processes_that_ask_at_once_get_as_many_as_there_are(alice: Member) -> None:
    at_once, looked = Barrier(ASKING, timeout=60), Barrier(ASKING, timeout=0.5)

    def check(taken: Collection[str]) -> None:
        with suppress(BrokenBarrierError):
            looked.wait()  # for the others, which may not look before this one is done
        if len(taken) >= LIMIT:
            raise Throttled("full")

    def ask(number: int) -> bool:
        """As a process does in its thread for rows."""
        connection.ensure_connection()
        at_once.wait()
        try:
            HeldSeats()._hold(f"{number}", caller(alice), "192.0.2.1", check)
        except Throttled:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(ASKING) as threads:
        assert sum(threads.map(ask, range(ASKING))) == LIMIT == HeldSeat.objects.count()


async def test_a_seat_that_was_given_back_is_free_at_once_and_its_row_goes(alice: Member) -> None:
    found = HeldSeats()
    give_back = await found.hold(caller(alice), "192.0.2.1", lambda taken: None)
    assert await found.open_seats(caller(alice)) == ["192.0.2.1"]
    give_back()
    assert await found.open_seats(caller(alice)) == []
    await until_deleted()


async def test_who_is_refused_or_leaves_holds_nothing(alice: Member) -> None:
    def refuse(taken: Collection[str]) -> None:
        raise Throttled("full")

    found = HeldSeats()
    with pytest.raises(Throttled):
        await found.hold(caller(alice), "192.0.2.1", refuse)
    leaving = asyncio.create_task(found.hold(caller(alice), "192.0.2.1", lambda taken: None))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert await found.open_seats(caller(alice)) == []
    await until_deleted()
