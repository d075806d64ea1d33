"""The rows of conversations keep their own rules."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.db import IntegrityError, transaction
from django.utils import timezone

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


def test_it_ends_a_session(alice: Member) -> None:
    session = begin(alice)
    RealtimeSession.objects.filter(pk=session.pk).update(ended_at=timezone.now(), close_code=4401)
    session.refresh_from_db()
    assert session.close_code == 4401


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


def test_older_rows_count_as_spoken_where_there_was_sound(alice: Member) -> None:
    session = begin(alice)
    for ordinal, input_audio_ms in ((1, 900), (2, 0)):
        Turn.objects.create(session=session, ordinal=ordinal, status="completed", input_audio_ms=input_audio_ms)
    import_module("voiceapp.realtime.migrations.0004_turn_is_spoken").mark_spoken_turns(apps, None)
    assert [turn.is_spoken for turn in session.turns.order_by("ordinal")] == [True, False]


def test_the_entrance_of_older_rows_is_told_from_their_transport(alice: Member) -> None:
    page = begin(alice, transport="page", api_key=None, user=alice.user)
    guest = begin(alice, transport="webrtc", api_key=None, is_guest=True)
    program = begin(alice, transport="webrtc")
    unknown = begin(alice, transport="webrtc", api_key=None)
    import_module("voiceapp.realtime.migrations.0006_entrance").name_entrances(apps, None)
    told = {row.pk: (row.entrance, row.transport) for row in RealtimeSession.objects.all()}
    assert told == {
        page.pk: ("page", "websocket"),
        guest.pk: ("page", "webrtc"),
        program.pk: ("program", "webrtc"),
        unknown.pk: (None, "webrtc"),
    }


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
