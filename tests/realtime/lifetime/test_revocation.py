"""Waking conversations whose key, login or account was taken away."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.models import ApiKey
from voiceapp.realtime.admission import admit
from voiceapp.realtime.doors import API_SOCKET
from voiceapp.realtime.lifetime import end_conditions, revocation
from voiceapp.realtime.lifetime.revocation import Credentials, RevocationWatch, revocation_watch, revoked

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "PERIOD_S", 0.02)


def by_key(member: Member) -> Credentials:
    return Credentials(member.account.pk, key_id=member.row.pk)


async def revoke(member: Member) -> None:
    await ApiKey.objects.filter(pk=member.row.pk).aupdate(revoked_at=timezone.now())


def watching() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "revocation watch"]


async def test_all_conversations_of_a_revoked_key_wake_and_no_others(alice: Member, bob: Member) -> None:
    watches = RevocationWatch()
    woken = [asyncio.create_task(watches.wait(by_key(alice))) for _ in range(3)]
    other = asyncio.create_task(watches.wait(by_key(bob)))
    await asyncio.sleep(0)

    await revoke(alice)
    async with asyncio.timeout(5):
        await asyncio.gather(*woken)

    assert not other.done()
    other.cancel()
    await asyncio.wait([other])


async def test_a_key_that_is_deleted_counts_as_revoked(alice: Member) -> None:
    waiting = asyncio.create_task(RevocationWatch().wait(by_key(alice)))
    await ApiKey.objects.filter(pk=alice.row.pk).adelete()

    async with asyncio.timeout(5):
        await waiting


async def test_one_watch_looks_for_all_and_rests_when_nobody_waits(alice: Member, bob: Member) -> None:
    watches = RevocationWatch()
    waiting = [asyncio.create_task(watches.wait(by_key(member))) for member in (alice, bob, alice)]
    await asyncio.sleep(0)
    assert len(watching()) == 1

    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    await asyncio.sleep(0)

    assert watching() == []


async def test_it_looks_again_after_it_rested(alice: Member) -> None:
    watches = RevocationWatch()
    first = asyncio.create_task(watches.wait(by_key(alice)))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    second = asyncio.create_task(watches.wait(by_key(alice)))

    await revoke(alice)

    async with asyncio.timeout(5):
        await second


async def test_a_session_that_ends_with_its_temporary_key_wakes_when_that_expires(alice: Member) -> None:
    now = timezone.now()
    watches = RevocationWatch()
    over, going_on, revoked_too = (
        asyncio.create_task(watches.wait(replace(by_key(alice), expires_at=now + timedelta(seconds=left_s))))
        for left_s in (0, 600, 601)
    )
    async with asyncio.timeout(5):
        await over
    assert not going_on.done()

    await revoke(alice)
    async with asyncio.timeout(5):
        await asyncio.gather(going_on, revoked_too)


async def test_it_expires_while_the_database_is_away(alice: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "PERIOD_S", 600)
    over = replace(by_key(alice), expires_at=timezone.now() + timedelta(milliseconds=50))
    async with asyncio.timeout(5):
        await RevocationWatch().wait(over)


async def test_the_setting_and_the_door_say_whether_a_session_ends_with_its_temporary_key(
    alice: Member, settings: Settings
) -> None:
    expires_at = timezone.now() + timedelta(minutes=1)
    lasting = Caller.of(alice.row)
    temporary = replace(lasting, is_temporary=True, expires_at=expires_at)
    grant = replace(API_SOCKET, ends_with_temporary_key=True)
    lost, temporary_lost = end_conditions.KEY_LOST, end_conditions.TEMPORARY_KEY_LOST
    for settings.TEMPORARY_KEYS_END_SESSIONS, door, caller, expected in (
        (False, API_SOCKET, temporary, lost),
        (False, grant, temporary, temporary_lost),
        (False, grant, lasting, lost),
        (True, API_SOCKET, temporary, temporary_lost),
        (True, API_SOCKET, replace(lasting, expires_at=expires_at), lost),
    ):
        assert (await admit(caller, door, "voice", "")).limits.revocation == expected


async def test_people_fall_with_their_login_their_person_or_their_account(alice: Member, charlie: Member) -> None:
    async def login(member: Member) -> str:
        store = SessionStore()
        await store.acreate()
        assert store.session_key is not None
        return store.session_key

    async def person(member: Member, login_key: str) -> Credentials:
        return Credentials(member.account.pk, user_id=member.user.pk, session_key=login_key)

    here, there = await person(alice, await login(alice)), await person(alice, await login(alice))
    guest = Credentials(charlie.account.pk)
    everybody = (here, there, guest, by_key(charlie))
    assert await revoked(everybody) == set()

    await SessionStore(here.session_key).aflush()
    assert await revoked(everybody) == {here}
    alice.user.is_active = False
    await alice.user.asave()
    assert await revoked(everybody) == {here, there}
    charlie.account.is_active = False
    await charlie.account.asave()
    assert await revoked(everybody) == set(everybody)


async def test_a_login_that_expires_is_over(alice: Member) -> None:
    store = SessionStore()
    await store.aset_expiry(-1)
    await store.acreate()
    assert store.session_key is not None
    credentials = Credentials(alice.account.pk, user_id=alice.user.pk, session_key=store.session_key)
    assert await revoked([credentials]) == {credentials}


async def test_every_event_loop_has_a_watch_of_its_own() -> None:
    async def another() -> RevocationWatch:
        return revocation_watch()

    here = revocation_watch()

    assert revocation_watch() is here
    assert await asyncio.to_thread(asyncio.run, another()) is not here
