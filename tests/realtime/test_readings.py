"""What a session that reads text aloud tells receivers of, how it ends, and what it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from django.utils import timezone

from tests.conftest import Member
from voiceapp.accounts.auth import caller_from_bearer
from voiceapp.accounts.models import ApiKey
from voiceapp.accounts.seats import seats
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.errors import EngineUnavailable, FloodError, InvalidParameter, Throttled
from voiceapp.realtime import close_codes, revocation
from voiceapp.realtime.inference.line import SILENT, TIMED_OUT
from voiceapp.realtime.inference.speech import Speech, SpeechSettings
from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.realtime.readings import ReadingEnded, ReadingSession, admit_reading
from voiceapp.webhooks.events import EventKind
from voiceapp.webhooks.models import WebhookEndpoint, WebhookEvent

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "Nine lives."


@pytest.fixture
async def speech() -> AsyncIterator[Speech]:
    espeak = Espeak()
    yield Speech(espeak, SpeechSettings(voice="", format="pcm", sample_rate_hz=16_000, rate=1.0, gain=1.0))
    await espeak.close()


@pytest.fixture
async def reading(alice: Member) -> ReadingSession:
    caller = await caller_from_bearer(alice.authorization)
    card = catalogue().default("tts")
    return await admit_reading(caller, card, card.name, "127.0.0.1")


async def close_of(reading: ReadingSession) -> int | None:
    return (await RealtimeSession.objects.aget(pk=reading.id, ended_at__isnull=False)).close_code


async def test_receivers_are_told_as_of_any_session(alice: Member, reading: ReadingSession, speech: Speech) -> None:
    await WebhookEndpoint.objects.acreate(
        workspace=alice.workspace, url="https://x.example", events=list(EventKind), secret_sealed="x"
    )

    async def speak() -> None:
        async with reading.charge("one") as meter:
            assert [sound async for sound in speech.say(TEXT, meter)]
        reading.spoke(speech, "completed")

    await reading.carry(speak())
    await reading.finish()

    assert [event.kind async for event in WebhookEvent.objects.order_by("pk")] == [
        EventKind.SESSION_CREATED,
        EventKind.THREAD_CREATED,
        EventKind.THREAD_IDLED,
        EventKind.SESSION_IDLED,
        EventKind.THREAD_TERMINATED,
        EventKind.SESSION_TERMINATED,
    ]
    assert (await Turn.objects.aget(session_id=reading.id)).assistant_text == TEXT
    assert await close_of(reading) == close_codes.NORMAL


async def test_it_ends_when_its_key_is_revoked(
    alice: Member, reading: ReadingSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revocation, "PERIOD_S", 0.02)
    await ApiKey.objects.filter(pk=alice.row.pk).aupdate(revoked_at=timezone.now())

    async def forever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(ReadingEnded) as ended:
        await reading.carry(forever())
    await reading.finish()

    assert ended.value.error == "invalid_api_key"
    assert await close_of(reading) == close_codes.KEY_REVOKED


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FloodError("Too slow.", code="too_slow"), close_codes.FLOOD),
        (FloodError(SILENT, code=TIMED_OUT), close_codes.NORMAL),
        (Throttled("Used up."), close_codes.BUDGET_USED_UP),
        (InvalidParameter("No such voice."), close_codes.NORMAL),
        (EngineUnavailable("No voice."), close_codes.UNAVAILABLE),
        (ZeroDivisionError(), close_codes.INTERNAL_ERROR),
    ],
    ids=["slow", "silent", "used up", "refused", "unavailable", "fault"],
)
async def test_its_row_says_why_it_failed(reading: ReadingSession, error: Exception, code: int) -> None:
    open_sessions = seats().open_sessions

    async def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        await reading.carry(fail())
    await reading.finish()

    assert await close_of(reading) == code
    assert seats().open_sessions == open_sessions - 1
