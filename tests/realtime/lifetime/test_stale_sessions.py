"""Rows without an end get one: when their process is dead, or when they must be over; nobody else's do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.realtime.test_models import begin
from voiceapp.realtime.close_codes import ABANDONED
from voiceapp.realtime.lifetime.processes import own_name
from voiceapp.realtime.lifetime.stale_sessions import LATE, UNHEARD, close_abandoned, close_overdue
from voiceapp.realtime.models import RealtimeSession
from voiceapp.webhooks.events import EventKind
from voiceapp.webhooks.models import WebhookEndpoint, WebhookEvent

pytestmark = pytest.mark.django_db(transaction=True)


async def end_of(row: RealtimeSession) -> tuple[int | None, bool]:
    found = await RealtimeSession.objects.aget(pk=row.pk)
    return found.close_code, found.ended_at is not None


def begun(member: Member, served_by: str, **changes: object) -> RealtimeSession:
    return begin(member, served_by=served_by, **changes)


async def test_a_start_ends_the_rows_of_dead_processes_only(alice: Member, dead: str) -> None:
    await WebhookEndpoint.objects.acreate(
        workspace=alice.workspace, url="https://x.example", events=[EventKind.SESSION_TERMINATED], secret_sealed="x"
    )
    rows = {
        name: await RealtimeSession.objects.acreate(
            account=alice.account, workspace=alice.workspace, model="voice", transport=door, served_by=served_by
        )
        for name, door, served_by in [
            ("crashed", "webrtc", dead),
            ("from before names", "websocket", ""),
            ("ours", "websocket", own_name()),
            ("elsewhere", "websocket", "another-host:1:boot+1"),
            ("relayed", "relayed", ""),
        ]
    }

    assert await close_abandoned() == 2
    assert await close_abandoned() == 0

    assert {name: await end_of(row) for name, row in rows.items()} == {
        "crashed": (ABANDONED, True),
        "from before names": (ABANDONED, True),
        "ours": (None, False),
        "elsewhere": (None, False),
        "relayed": (None, False),
    }
    assert await WebhookEvent.objects.filter(kind=EventKind.SESSION_TERMINATED).acount() == 2


def test_what_must_be_over_is_closed_whoever_held_it(alice: Member, settings: Settings) -> None:
    settings.SESSION_LIFETIME_S, settings.GUEST_SESSION_S = 600, 60
    now = timezone.now()
    over, going_on = now - timedelta(seconds=601) - LATE, now - timedelta(seconds=599)
    old = begun(alice, "another-host:1:boot+1", started_at=over)
    young = begun(alice, "another-host:1:boot+1", started_at=going_on)
    relayed = begun(alice, "", transport="relayed", started_at=over)
    calling = begun(alice, "", transport="relayed", started_at=going_on)

    assert close_overdue(now) == 2
    assert close_overdue(now) == 0

    for row in (old, young, relayed, calling):
        row.refresh_from_db()
    assert (old.close_code, old.ended_at) == (ABANDONED, now)
    assert (relayed.close_code, relayed.ended_at) == (None, over + timedelta(seconds=600))
    assert young.ended_at is None
    assert calling.ended_at is None


def test_an_end_is_not_written_over(alice: Member) -> None:
    row = begun(alice, "another-host:1:boot+1", started_at=timezone.now() - timedelta(days=2))
    RealtimeSession.objects.filter(pk=row.pk).update(ended_at=timezone.now(), close_code=1000)
    assert close_overdue(timezone.now()) == 0
    row.refresh_from_db()
    assert row.close_code == 1000


def test_a_session_held_elsewhere_ends_with_the_last_report_of_it(alice: Member, settings: Settings) -> None:
    settings.SESSION_LIFETIME_S = settings.GUEST_SESSION_S = 1200
    now = timezone.now()
    silent, heard = now - UNHEARD - timedelta(seconds=1), now - UNHEARD + timedelta(seconds=1)
    lost = begun(alice, "", transport="relayed", started_at=now - timedelta(seconds=950), reported_at=silent)
    talking = begun(alice, "", transport="relayed", started_at=now - timedelta(seconds=950), reported_at=heard)
    long_lost = begun(alice, "", transport="relayed", started_at=now - timedelta(seconds=5000), reported_at=silent)

    assert close_overdue(now) == 2

    for row in (lost, talking, long_lost):
        row.refresh_from_db()
    assert (lost.close_code, lost.ended_at) == (ABANDONED, silent)
    assert talking.ended_at is None
    assert long_lost.ended_at == silent
