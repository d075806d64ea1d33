"""Waking the conversations of revoked keys."""

from __future__ import annotations

import asyncio

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.accounts.models import ApiKey
from voiceapp.realtime import watch
from voiceapp.realtime.watch import RevocationWatch, revocation_watch

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PERIOD_S", 0.02)


async def revoke(member: Member) -> None:
    await ApiKey.objects.filter(pk=member.row.pk).aupdate(revoked_at=timezone.now())


def watching() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "revocation watch"]


async def test_all_conversations_of_a_revoked_key_wake_and_no_others(alice: Member, bob: Member) -> None:
    watches = RevocationWatch()
    woken = [asyncio.create_task(watches.wait(alice.row.pk)) for _ in range(3)]
    other = asyncio.create_task(watches.wait(bob.row.pk))
    await asyncio.sleep(0)

    await revoke(alice)
    async with asyncio.timeout(5):
        await asyncio.gather(*woken)

    assert not other.done()
    other.cancel()
    await asyncio.wait([other])


async def test_a_key_that_is_deleted_counts_as_revoked(alice: Member) -> None:
    waiting = asyncio.create_task(RevocationWatch().wait(alice.row.pk))
    await ApiKey.objects.filter(pk=alice.row.pk).adelete()

    async with asyncio.timeout(5):
        await waiting


async def test_one_watch_looks_for_all_and_rests_when_nobody_waits(alice: Member, bob: Member) -> None:
    watches = RevocationWatch()
    waiting = [asyncio.create_task(watches.wait(member.row.pk)) for member in (alice, bob, alice)]
    await asyncio.sleep(0)
    assert len(watching()) == 1

    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    await asyncio.sleep(0)

    assert watching() == []


async def test_it_looks_again_after_it_rested(alice: Member) -> None:
    watches = RevocationWatch()
    first = asyncio.create_task(watches.wait(alice.row.pk))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    second = asyncio.create_task(watches.wait(alice.row.pk))

    await revoke(alice)

    async with asyncio.timeout(5):
        await second


@pytest.mark.parametrize("closes", [True, False])
async def test_callers_without_a_key_and_lenient_installations_are_left_alone(
    alice: Member, settings: Settings, closes: bool
) -> None:
    settings.REVOKE_CLOSES_SESSIONS = closes
    waiting = asyncio.create_task(RevocationWatch().wait(None if closes else alice.row.pk))
    await revoke(alice)

    done, _ = await asyncio.wait([waiting], timeout=0.2)

    assert not done
    waiting.cancel()


async def test_every_event_loop_has_a_watch_of_its_own() -> None:
    async def another() -> RevocationWatch:
        return revocation_watch()

    here = revocation_watch()

    assert revocation_watch() is here
    assert await asyncio.to_thread(asyncio.run, another()) is not here
