"""Waking conversations whose key, login or account was taken away."""

from __future__ import annotations

import asyncio

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.accounts.models import ApiKey
from voiceapp.realtime import watch
from voiceapp.realtime.watch import RevocationWatch, Standing, fallen, revocation_watch

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PERIOD_S", 0.02)


def by_key(member: Member) -> Standing:
    return Standing(member.account.pk, key_id=member.row.pk)


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


async def test_lenient_installations_close_nothing(alice: Member, settings: Settings) -> None:
    settings.REVOKE_CLOSES_SESSIONS = False
    waiting = asyncio.create_task(RevocationWatch().wait(by_key(alice)))
    await revoke(alice)

    done, _ = await asyncio.wait([waiting], timeout=0.2)

    assert not done
    waiting.cancel()


async def test_people_fall_with_their_login_their_person_or_their_account(alice: Member, charlie: Member) -> None:
    async def login(member: Member) -> str:
        store = SessionStore()
        await store.acreate()
        assert store.session_key is not None
        return store.session_key

    async def person(member: Member, login_key: str) -> Standing:
        return Standing(member.account.pk, user_id=member.user.pk, session_key=login_key)

    here, there = await person(alice, await login(alice)), await person(alice, await login(alice))
    guest = Standing(charlie.account.pk)
    everybody = (here, there, guest, by_key(charlie))
    assert await fallen(everybody) == set()

    await SessionStore(here.session_key).aflush()
    assert await fallen(everybody) == {here}
    alice.user.is_active = False
    await alice.user.asave()
    assert await fallen(everybody) == {here, there}
    charlie.account.is_active = False
    await charlie.account.asave()
    assert await fallen(everybody) == set(everybody)


async def test_a_login_that_expires_is_over(alice: Member) -> None:
    store = SessionStore()
    await store.aset_expiry(-1)
    await store.acreate()
    assert store.session_key is not None
    standing = Standing(alice.account.pk, user_id=alice.user.pk, session_key=store.session_key)
    assert await fallen([standing]) == {standing}


async def test_every_event_loop_has_a_watch_of_its_own() -> None:
    async def another() -> RevocationWatch:
        return revocation_watch()

    here = revocation_watch()

    assert revocation_watch() is here
    assert await asyncio.to_thread(asyncio.run, another()) is not here
