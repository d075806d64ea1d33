"""Seats count over the processes of a host, exactly; those of processes that are gone do not count."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from subprocess import Popen
from threading import Barrier, BrokenBarrierError

import pytest
from django.db import connection

from tests.conftest import Member
from voiceapp.accounts.auth import Caller
from voiceapp.errors import Throttled
from voiceapp.realtime.held_seats import HeldSeats
from voiceapp.realtime.lifetime.processes import own_name
from voiceapp.realtime.models import HeldSeat

pytestmark = pytest.mark.django_db(transaction=True)

OTHER_HOST = "another-host:1:boot+1"
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


async def test_seats_of_living_processes_of_this_host_count(
    alice: Member, charlie: Member, other: tuple[str, Popen[str]], dead: str
) -> None:
    for number, held_by in enumerate((own_name(), other[0], dead, OTHER_HOST), start=1):
        await held(alice, held_by, f"192.0.2.{number}")
    await held(charlie, other[0], "192.0.2.9", is_guest=True)
    assert sorted(await HeldSeats().open_seats(caller(alice))) == ["192.0.2.1", "192.0.2.2"]
    assert await HeldSeats().open_seats(caller(charlie)) == []
    assert await HeldSeats().open_seats(caller(charlie, is_guest=True)) == ["192.0.2.9"]
    assert await HeldSeats().open_seats(caller(alice, is_guest=True)) == []  # guests of another site


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
    seats = HeldSeats()
    give_back = await seats.hold(caller(alice), "192.0.2.1", lambda taken: None)
    assert await seats.open_seats(caller(alice)) == ["192.0.2.1"]
    give_back()
    assert await seats.open_seats(caller(alice)) == []
    await until_deleted()


async def test_who_is_refused_or_leaves_holds_nothing(alice: Member) -> None:
    def refuse(taken: Collection[str]) -> None:
        raise Throttled("full")

    seats = HeldSeats()
    with pytest.raises(Throttled):
        await seats.hold(caller(alice), "192.0.2.1", refuse)
    leaving = asyncio.create_task(seats.hold(caller(alice), "192.0.2.1", lambda taken: None))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert await seats.open_seats(caller(alice)) == []
    await until_deleted()
