"""The figures of the day on the index of the operators' site."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.models import offered
from tests.realtime.test_models import begin
from voiceapp.accounts.models import ApiKey
from voiceapp.catalogue.cards import ModelCard
from voiceapp.engines.interfaces import Provider
from voiceapp.errors import EngineUnavailable
from voiceapp.operators.dashboard import median_voice_to_voice_ms
from voiceapp.realtime.models import RealtimeSession, Turn


def end(session: RealtimeSession) -> None:
    RealtimeSession.objects.filter(pk=session.pk).update(ended_at=timezone.now(), close_code=1000)


@pytest.mark.parametrize(
    ("latencies", "expected"),
    [([], None), ([400], 400), ([900, 300, 400], 400), ([100, 900, 300, 500], 400), ([None, 700], 700)],
)
def test_it_finds_the_median(alice: Member, latencies: list[int | None], expected: int | None) -> None:
    session = begin(alice)
    now = timezone.now()
    Turn.objects.create(
        session=session,
        ordinal=99,
        status="completed",
        is_spoken=True,
        first_audio_ms=1,
        started_at=now - timedelta(1),
    )
    for ordinal, latency in enumerate(latencies, start=1):
        Turn.objects.create(
            session=session, ordinal=ordinal, status="completed", is_spoken=True, first_audio_ms=latency
        )
    assert median_voice_to_voice_ms(now) == expected


def test_typed_turns_do_not_count_as_voice_to_voice(desk: Client, alice: Member) -> None:
    session = begin(alice)
    for ordinal in range(1, 9):
        Turn.objects.create(session=session, ordinal=ordinal, status="completed", first_audio_ms=97)
    figures = {figure.name: figure for figure in desk.get(reverse("admin:index")).context["figures"]}
    assert figures["Median voice to voice today"].value == "no spoken turn with a spoken reply yet"

    for ordinal, latency in enumerate((250, 870, 560), start=9):
        Turn.objects.create(
            session=session, ordinal=ordinal, status="completed", is_spoken=True, first_audio_ms=latency
        )
    page = desk.get(reverse("admin:index"))
    figures = {figure.name: figure for figure in page.context["figures"]}
    assert figures["Median voice to voice today"].value == "560 ms"
    assert "from the caller&#x27;s last sound of speech until the reply&#x27;s first sound" in page.content.decode()


def test_it_shows_the_day_on_the_index(desk: Client, alice: Member) -> None:
    now = timezone.now()
    live, over = begin(alice), begin(alice)
    end(over)
    long_ago = begin(alice, started_at=now - timedelta(days=3))
    end(long_ago)
    Turn.objects.create(session=live, ordinal=1, status="completed", is_spoken=True, first_audio_ms=444)
    ApiKey.objects.filter(pk=alice.row.pk).update(last_used_at=now)

    page = desk.get(reverse("admin:index"))
    assert [(figure.name, figure.value) for figure in page.context["figures"]] == [
        ("Open conversations", "1"),
        ("Conversations begun today", "2"),
        ("Median voice to voice today", "444 ms"),
        ("API keys used today", "1"),
    ]
    assert "444 ms" in page.content.decode()


class OutOfOrder(Provider):
    """A speech server that does not answer."""

    trouble = EngineUnavailable("The speech server cannot be reached.", remedy="Check TTS_BASE_URL.")


def test_it_shows_a_speech_server_that_is_out_of_order(desk: Client, settings: Settings) -> None:
    card = ModelCard("far", "tts", f"{__name__}.OutOfOrder")
    with offered(settings, [card, *settings.VOICE_MODELS]):
        figure = desk.get(reverse("admin:index")).context["figures"][-1]
    assert figure.value == "The speech server cannot be reached. Check TTS_BASE_URL."


def test_it_shows_no_figures_to_those_who_may_not_see_conversations(bob: Member) -> None:
    bob.user.is_staff = True
    bob.user.save()
    client = Client()
    client.force_login(bob.user)
    page = client.get(reverse("admin:index"))
    assert page.status_code == 200
    assert page.context["figures"] == []
