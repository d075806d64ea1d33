"""Words are forgotten in time; numbers stay."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.realtime.retention import BATCH, purge_transcripts

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation(alice: Member) -> RealtimeSession:
    return RealtimeSession.objects.create(
        account=alice.account, workspace=alice.workspace, model="voice", transport="websocket"
    )


def turn(conversation: RealtimeSession, ordinal: int, *, days_ago: float) -> Turn:
    return Turn.objects.create(
        session=conversation,
        ordinal=ordinal,
        started_at=timezone.now() - timedelta(days=days_ago),
        user_text="what I said",
        assistant_text="what it answered",
        status="completed",
        input_audio_ms=1200,
    )


def test_it_blanks_old_words_and_keeps_the_numbers(conversation: RealtimeSession, settings: Settings) -> None:
    settings.TRANSCRIPT_DAYS = 30
    old, young = turn(conversation, 1, days_ago=31), turn(conversation, 2, days_ago=29)
    assert purge_transcripts(timezone.now()) == 1
    old.refresh_from_db()
    young.refresh_from_db()
    assert (old.user_text, old.assistant_text, old.input_audio_ms) == ("", "", 1200)
    assert young.user_text == "what I said"
    assert purge_transcripts(timezone.now()) == 0


def test_it_forgets_everything_when_no_words_are_kept(conversation: RealtimeSession, settings: Settings) -> None:
    settings.TRANSCRIPT_DAYS = 0
    for ordinal in range(1, BATCH + 2):
        turn(conversation, ordinal, days_ago=0.01)
    assert purge_transcripts(timezone.now()) == BATCH + 1
