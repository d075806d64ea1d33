"""Conversations in the operators' site, and the panel on its index."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.conftest import Member
from tests.realtime.test_models import begin
from voiceapp.accounts.models import ApiKey
from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.site import median_voice_to_voice_ms

SESSIONS = "admin:realtime_realtimesession_changelist"


@pytest.fixture
def desk(operator: User) -> Client:
    client = Client()
    client.force_login(operator)
    return client


def end(session: RealtimeSession) -> None:
    RealtimeSession.objects.filter(pk=session.pk).update(ended_at=timezone.now(), close_code=1000)


def listed(desk: Client, **query: str) -> set[str]:
    return {row.pk for row in desk.get(reverse(SESSIONS), query).context["cl"].result_list}


def test_it_filters_conversations(desk: Client, alice: Member, charlie: Member) -> None:
    live, page, over = begin(alice), begin(charlie, transport="page", model="other"), begin(alice)
    end(over)
    assert listed(desk) == {live.pk, page.pk, over.pk}
    assert listed(desk, state="open") == {live.pk, page.pk}
    assert listed(desk, state="closed") == {over.pk}
    assert listed(desk, transport__exact="page") == {page.pk}
    assert listed(desk, model="other") == {page.pk}
    assert listed(desk, q="Zenith") == {page.pk}


def test_it_shows_turns_with_latencies_and_escapes_what_was_said(desk: Client, alice: Member) -> None:
    session = begin(alice)
    Turn.objects.create(
        session=session, ordinal=1, status="completed", user_text="<script>alert(1)</script>", first_audio_ms=4321
    )
    page = desk.get(reverse("admin:realtime_realtimesession_change", args=[quote(session.pk)])).content.decode()
    assert "4321" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


def test_it_shows_relayed_conversations_without_pretending_to_know_their_length(desk: Client, alice: Member) -> None:
    relayed = begin(alice, transport="relayed", model="upstream")
    begin(alice)
    assert listed(desk, transport__exact="relayed") == {relayed.pk}
    page = desk.get(reverse(SESSIONS), {"transport__exact": "relayed"}).content.decode()
    assert "WebRTC, relayed" in page
    assert "known elsewhere" in page


def test_it_edits_no_conversation(desk: Client, alice: Member) -> None:
    session = begin(alice)
    address = reverse("admin:realtime_realtimesession_change", args=[quote(session.pk)])
    assert desk.post(address, {"model": "changed"}).status_code == 403
    assert desk.get(reverse("admin:realtime_realtimesession_add")).status_code == 403


def test_it_deletes_a_conversation_only_when_it_is_over(desk: Client, alice: Member) -> None:
    session = begin(alice)
    Turn.objects.create(session=session, ordinal=1, status="completed", user_text="Hello")
    address = reverse("admin:realtime_realtimesession_delete", args=[quote(session.pk)])
    assert desk.post(address, {"post": "yes"}).status_code == 403
    end(session)
    assert desk.post(address, {"post": "yes"}).status_code == 302
    assert not RealtimeSession.objects.exists()
    assert not Turn.objects.exists()


@pytest.mark.parametrize(
    ("latencies", "expected"),
    [([], None), ([400], 400), ([900, 300, 400], 400), ([100, 900, 300, 500], 400), ([None, 700], 700)],
)
def test_it_finds_the_median(alice: Member, latencies: list[int | None], expected: int | None) -> None:
    session = begin(alice)
    now = timezone.now()
    Turn.objects.create(
        session=session, ordinal=99, status="completed", first_audio_ms=1, started_at=now - timedelta(1)
    )
    for ordinal, latency in enumerate(latencies, start=1):
        Turn.objects.create(session=session, ordinal=ordinal, status="completed", first_audio_ms=latency)
    assert median_voice_to_voice_ms(now) == expected


def test_it_shows_the_day_on_the_index(desk: Client, alice: Member) -> None:
    now = timezone.now()
    live, over = begin(alice), begin(alice)
    end(over)
    long_ago = begin(alice, started_at=now - timedelta(days=3))
    end(long_ago)
    Turn.objects.create(session=live, ordinal=1, status="completed", first_audio_ms=444)
    ApiKey.objects.filter(pk=alice.row.pk).update(last_used_at=now)

    page = desk.get(reverse("admin:index"))
    assert [(figure.name, figure.value) for figure in page.context["figures"]] == [
        ("Open conversations", "1"),
        ("Conversations begun today", "2"),
        ("Median voice to voice today", "444 ms"),
        ("API keys used today", "1"),
    ]
    assert "444 ms" in page.content.decode()


def test_it_needs_no_inline_script_or_style(desk: Client, alice: Member) -> None:
    """The policy forbids both, so a page that holds one would be broken."""
    session = begin(alice)
    for address in (
        reverse("admin:index"),
        reverse(SESSIONS),
        reverse("admin:realtime_realtimesession_change", args=[quote(session.pk)]),
        reverse("admin:accounts_apikey_add"),
    ):
        response = desk.get(address)
        page = response.content.decode()
        assert "unsafe-inline" not in response.headers["Content-Security-Policy"]
        assert "<style" not in page
        assert ' style="' not in page
        assert " onclick=" not in page


def test_it_shows_no_figures_to_those_who_may_not_see_conversations(bob: Member) -> None:
    bob.user.is_staff = True
    bob.user.save()
    client = Client()
    client.force_login(bob.user)
    page = client.get(reverse("admin:index"))
    assert page.status_code == 200
    assert page.context["figures"] == []
