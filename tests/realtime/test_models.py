"""The rows of conversations keep their own rules."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from tests.conftest import Member
from voiceapp.realtime.models import RealtimeSession, Turn


def begin(member: Member, **changes: object) -> RealtimeSession:
    return RealtimeSession.objects.create(
        **{
            "account": member.account,
            "workspace": member.workspace,
            "api_key": member.row,
            "model": "voice",
            "transport": "websocket",
            **changes,
        }
    )


def test_it_names_a_session_as_the_wire_does(alice: Member) -> None:
    session = begin(alice)
    assert session.id.startswith("sess_")
    assert session.id != begin(alice).id


@pytest.mark.parametrize(
    "changes",
    [{"transport": "pigeon"}, {"close_code": 1000}, {"is_guest": True}],
    ids=["unknown transport", "closed but not ended", "guest with a key"],
)
def test_it_refuses_a_session_that_cannot_be(alice: Member, changes: dict[str, object]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        begin(alice, **changes)


@pytest.mark.parametrize(
    "changes",
    [{"status": "perhaps"}, {"ordinal": 0}, {"ordinal": 1}, {"heard_text": "Half of"}, {"first_audio_ms": -1}],
    ids=["unknown status", "no ordinal", "ordinal taken", "heard but not interrupted", "latency below zero"],
)
def test_it_refuses_a_turn_that_cannot_be(alice: Member, changes: dict[str, object]) -> None:
    session = begin(alice)
    Turn.objects.create(session=session, ordinal=1, status="completed")
    with pytest.raises(IntegrityError), transaction.atomic():
        Turn.objects.create(**{"session": session, "ordinal": 2, "status": "completed", **changes})


def test_it_keeps_a_conversation_when_its_key_and_login_go(alice: Member) -> None:
    session = begin(alice, user=alice.user)
    alice.row.delete()
    alice.user.delete()
    session.refresh_from_db()
    assert session.api_key is session.user is None


def test_it_deletes_an_account_with_its_conversations(alice: Member, charlie: Member) -> None:
    Turn.objects.create(session=begin(alice), ordinal=1, status="completed", user_text="Hello")
    kept = begin(charlie)
    alice.account.delete()
    assert list(RealtimeSession.objects.all()) == [kept]
    assert not Turn.objects.exists()
