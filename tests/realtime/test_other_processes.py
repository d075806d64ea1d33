"""Conversations in other processes of this host are found, and those of the dead are not counted."""

from __future__ import annotations

from subprocess import Popen

import pytest
from django.utils import timezone

from tests.conftest import Member
from voiceapp.accounts.auth import Caller
from voiceapp.realtime.models import RealtimeSession
from voiceapp.realtime.other_processes import open_sessions
from voiceapp.realtime.processes import own_name

pytestmark = pytest.mark.django_db(transaction=True)

OTHER_HOST = "another-host:1:boot+1"


def caller(member: Member, *, is_guest: bool = False) -> Caller:
    return Caller(
        account_id=member.account.pk,
        workspace_id=member.workspace.pk,
        key_id=None if is_guest else member.row.pk,
        user_id=None,
        is_guest=is_guest,
        label="somebody",
    )


async def begun(member: Member, served_by: str, address: str, **changes: object) -> None:
    await RealtimeSession.objects.acreate(
        account=member.account,
        workspace=member.workspace,
        model="voice",
        transport="webrtc",
        served_by=served_by,
        client_address=address,
        **changes,
    )


async def test_open_conversations_of_living_processes_count(
    alice: Member, charlie: Member, other: tuple[str, Popen[str]], dead: str
) -> None:
    await begun(alice, other[0], "192.0.2.1")
    await begun(alice, other[0], "192.0.2.1")
    await begun(alice, other[0], "192.0.2.2", ended_at=timezone.now())
    for number, served_by in enumerate((own_name(), dead, OTHER_HOST, ""), start=3):
        await begun(alice, served_by, f"192.0.2.{number}")
    assert await open_sessions(caller(alice)) == ["192.0.2.1", "192.0.2.1"]
    assert await open_sessions(caller(charlie)) == []


async def test_guests_count_together_and_for_nobody_else(
    alice: Member, charlie: Member, other: tuple[str, Popen[str]]
) -> None:
    await begun(alice, other[0], "192.0.2.1")
    await begun(charlie, other[0], "192.0.2.2", is_guest=True)
    assert await open_sessions(caller(alice, is_guest=True)) == ["192.0.2.2"]
    assert await open_sessions(caller(charlie)) == []
