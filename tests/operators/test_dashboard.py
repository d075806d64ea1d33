"""The front page of the operators' site."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.models import offered
from tests.realtime.test_models import begin
from tests.tasks.conftest import write
from tests.web import words_of
from voiceapp.accounts.models import ApiKey
from voiceapp.catalogue.cards import ModelCard
from voiceapp.engines.interfaces import Provider, Voice
from voiceapp.errors import EngineUnavailable
from voiceapp.operators.dashboard import charts, voice_to_voice_ms
from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.webhooks.models import WebhookEndpoint


def end(session: RealtimeSession, code: int = 1000) -> None:
    RealtimeSession.objects.filter(pk=session.pk).update(ended_at=timezone.now(), close_code=code)


@pytest.mark.parametrize(
    ("latencies", "expected"),
    [([], (None, None)), ([400], (400, 400)), ([900, 300, 400], (400, 900)), ([*range(1, 101)], (50, 95))],
)
def test_it_finds_median_and_95th_percentile(
    alice: Member, latencies: list[int], expected: tuple[int | None, int | None]
) -> None:
    session = begin(alice)
    Turn.objects.create(session=session, ordinal=200, status="completed", first_audio_ms=1)  # typed: it does not count
    for ordinal, latency in enumerate(latencies, start=1):
        Turn.objects.create(
            session=session, ordinal=ordinal, status="completed", is_spoken=True, first_audio_ms=latency
        )
    assert voice_to_voice_ms(Turn.objects.all()) == expected


def test_it_shows_now_and_the_day(desk: Client, alice: Member) -> None:
    now = timezone.now()
    live, over, long_ago = begin(alice), begin(alice), begin(alice, started_at=now - timedelta(days=3))
    end(over)
    end(long_ago)
    Turn.objects.create(session=live, ordinal=1, status="completed", is_spoken=True, first_audio_ms=444)
    Turn.objects.create(session=live, ordinal=2, status="failed")
    ApiKey.objects.filter(pk=alice.row.pk).update(last_used_at=now)
    write(alice)

    page = desk.get(reverse("admin:index"))
    figures = {figure.name: figure.value for figure in page.context["figures"]}
    assert figures["Open conversations"] == "1"
    assert figures["Conversations begun today"] == "2"
    assert figures["Turns today"] == "2"
    assert figures["Voice to voice today"] == "444 ms"
    assert figures["Tasks waiting and running"] == "1 and 0"
    assert figures["API keys used today"] == "1"
    words = words_of(page.content.decode())
    assert "95 of 100 took at most 444 ms" in words
    assert "Nothing needs attention." in words


def test_charts_count_turns_and_failures_by_their_time(alice: Member, operator: User) -> None:
    now = timezone.now().replace(minute=30, second=30)
    session = begin(alice)
    for ordinal, (ago, status) in enumerate([(0, "completed"), (0, "failed"), (10, "completed"), (90, "completed")], 1):
        at = now - timedelta(minutes=ago)
        Turn.objects.create(
            session=session, ordinal=ordinal, status=status, started_at=at, is_spoken=True, first_audio_ms=100 * ordinal
        )
    hour, day = charts(now, operator)
    assert [bar.cells for bar in hour.bars if bar.height] == [["1", "0", "300 ms"], ["2", "1", "150 ms"]]
    assert [bar.cells[:2] for bar in day.bars if bar.height] == [["1", "0"], ["3", "1"]]
    assert [bar.height for bar in hour.bars if bar.height] == [30, 60]


class OutOfOrder(Provider):
    voices = (Voice("ann", "Ann"),)
    trouble = EngineUnavailable("The speech server cannot be reached.", remedy="Check TTS_BASE_URL.")


def test_what_needs_attention_is_loud(desk: Client, alice: Member, settings: Settings) -> None:
    end(begin(alice), 4011)
    WebhookEndpoint.objects.create(
        workspace=alice.workspace, url="https://a.example", secret_sealed="x", consecutive_fail=1
    )
    write(alice, due_at=timezone.now() - timedelta(minutes=5))
    card = ModelCard("far", "tts", f"{__name__}.OutOfOrder")
    with offered(settings, [card, *settings.VOICE_MODELS]):
        page = words_of(desk.get(reverse("admin:index")).content.decode())
    assert "The speech server cannot be reached. Check TTS_BASE_URL." in page
    assert "Is a worker running?" in page
    assert "far (The speech server cannot be reached. Check TTS_BASE_URL.)" in page
    assert "1 voice of far" in page
    assert "Conversations ended by a fault of this server today: 1" in page
    assert "Webhook receivers that fail: 1" in page
    assert "Nothing needs attention" not in page


def test_it_shows_no_figures_to_those_who_may_not_see_conversations(bob: Member) -> None:
    bob.user.is_staff = True
    bob.user.save()
    client = Client()
    client.force_login(bob.user)
    page = client.get(reverse("admin:index"))
    assert page.status_code == 200
    assert "figures" not in page.context
    assert "Open conversations" not in page.content.decode()
