"""Leases of processes: what one held whose lease is over is closed, and nothing else is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.realtime.test_models import begin
from voiceapp.realtime.close_codes import ABANDONED
from voiceapp.realtime.lifetime.process_lease import close_abandoned, renew
from voiceapp.realtime.lifetime.processes import NAME_LENGTH, own_name
from voiceapp.realtime.models import HeldSeat, ServerProcess
from voiceapp.webhooks.events import EventKind
from voiceapp.webhooks.models import WebhookEndpoint, WebhookEvent

pytestmark = pytest.mark.django_db(transaction=True)

LONG = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _lease(settings: Settings) -> None:
    settings.TASK_LEASE_S = 60


def held(name: str, *, since: timedelta = LONG, left: timedelta = LONG) -> str:
    ServerProcess.objects.create(name=name, held_since=Now() - since, lease_until=Now() + left)
    return name


def test_what_a_process_held_is_closed_when_its_lease_is_over_and_nothing_else_is(alice: Member) -> None:
    WebhookEndpoint.objects.create(
        workspace=alice.workspace, url="https://x.example", events=[EventKind.SESSION_TERMINATED], secret_sealed="x"
    )
    names = [held(own_name()), held("host-a:1:x"), held("host-b:1:x", left=-timedelta(seconds=1)), "older-release:1:x"]
    rows = {name: begin(alice, served_by=name) for name in names}
    over = begin(alice, served_by=names[2], ended_at=timezone.now(), close_code=1000)
    relayed = begin(alice, served_by="", transport="relayed")
    for name in names:
        HeldSeat.objects.create(id=name, account=alice.account, is_guest=False, client_address="", held_by=name)

    assert close_abandoned() == 1
    assert close_abandoned() == 0

    for row in (*rows.values(), over, relayed):
        row.refresh_from_db()
    assert {name: row.close_code for name, row in rows.items()} == {name: None for name in names} | {
        names[2]: ABANDONED
    }
    assert (over.close_code, relayed.ended_at) == (1000, None)
    assert set(HeldSeat.objects.values_list("held_by", flat=True)) == {*names} - {names[2]}
    assert set(ServerProcess.objects.values_list("name", flat=True)) == {*names[:2]}
    assert WebhookEvent.objects.filter(kind=EventKind.SESSION_TERMINATED).count() == 1


def test_a_process_that_just_came_back_to_the_database_closes_nothing_of_others(alice: Member) -> None:
    """They could not renew their leases either."""
    row = begin(alice, served_by=held("host-b:1:x", left=-timedelta(seconds=1)))
    silent = begin(alice, transport="relayed", reported_at=timezone.now() - LONG)
    held(own_name(), left=-timedelta(seconds=1))
    renew()
    assert close_abandoned() == 0
    ServerProcess.objects.filter(name=own_name()).update(held_since=Now() - timedelta(seconds=61))
    renew()
    assert close_abandoned() == 1
    row.refresh_from_db()
    assert row.close_code == ABANDONED
    ServerProcess.objects.filter(name=own_name()).update(held_since=Now() - timedelta(seconds=151))
    assert close_abandoned() == 1
    silent.refresh_from_db()
    assert (silent.ended_at, silent.close_code) == (silent.reported_at, ABANDONED)


def test_a_lease_that_is_renewed_goes_on() -> None:
    assert len(own_name()) <= NAME_LENGTH
    renew()
    first = ServerProcess.objects.get(name=own_name())
    ServerProcess.objects.update(lease_until=Now() + timedelta(seconds=1))
    renew()
    again = ServerProcess.objects.get(name=own_name())
    assert again.held_since == first.held_since
    assert again.lease_until > timezone.now() + timedelta(seconds=40)
