"""Rows without an end get one when they must be over; others do not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.realtime.test_models import begin
from voiceapp.realtime.close_codes import ABANDONED
from voiceapp.realtime.lifetime.stale_sessions import LATE, close_overdue
from voiceapp.realtime.models import RealtimeSession

pytestmark = pytest.mark.django_db(transaction=True)


def begun(member: Member, served_by: str, **changes: object) -> RealtimeSession:
    return begin(member, served_by=served_by, **changes)


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
