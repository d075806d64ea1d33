"""Conversations in the operators' site."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib.admin import site
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.conftest import Member
from tests.realtime.test_models import begin
from tests.web import words_of
from voiceapp.accounts.models import UsageRecord
from voiceapp.realtime import bridge
from voiceapp.realtime.close_codes import LIFETIME_OVER, MEANINGS, NORMAL
from voiceapp.realtime.models import OperatorRequest, RealtimeSession, Turn

SESSIONS = "admin:realtime_realtimesession_changelist"


def end(session: RealtimeSession) -> None:
    RealtimeSession.objects.filter(pk=session.pk).update(ended_at=timezone.now(), close_code=1000)


def listed(desk: Client, **query: str) -> set[str]:
    return {row.pk for row in desk.get(reverse(SESSIONS), query).context["cl"].result_list}


def test_it_filters_conversations(desk: Client, alice: Member, charlie: Member) -> None:
    live, page, over = begin(alice), begin(charlie, entrance="page", model="other"), begin(alice)
    end(over)
    assert listed(desk) == {live.pk, page.pk, over.pk}
    assert listed(desk, state="open") == {live.pk, page.pk}
    assert listed(desk, state="closed") == {over.pk}
    assert listed(desk, entrance__exact="page") == {page.pk}
    assert listed(desk, model="other") == {page.pk}
    assert listed(desk, account__id__exact=str(charlie.account.pk)) == {page.pk}
    assert listed(desk, q=live.pk[:12]) == {live.pk}


def test_the_search_over_all_tables_stops_after_some(
    desk: Client, alice: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voiceapp.http.admin.MOST_FOUND", 3)
    for _ in range(5):
        begin(alice)
    found = desk.get(reverse("admin:search"), {"s": "sess_", "extended": "1"}).content.decode()
    assert found.count("/realtimesession/sess_") == 3
    assert len(listed(desk, q="sess_")) == 5


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
    assert "known to the other service only" in page


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


def test_a_turn_says_from_when_its_latencies_count(desk: Client, alice: Member) -> None:
    session = begin(alice)
    Turn.objects.create(session=session, ordinal=1, status="completed", is_spoken=True, first_audio_ms=412)
    Turn.objects.create(session=session, ordinal=2, status="completed", first_audio_ms=97)
    page = desk.get(reverse("admin:realtime_realtimesession_change", args=[quote(session.pk)])).content.decode()
    rows = words_of(page)
    assert rows.index("last sound of speech") < rows.index(" 412 ") < rows.index(" 97 ")
    assert "Latencies are milliseconds from the last sound that the caller spoke" in page


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        (1000, "The session is finished.", "finished (1000)"),
        (1001, "The caller left.", "caller left: page closed or reloaded (1001)"),
        (1006, "The connection was lost.", "connection lost (1006)"),
        (1006, "The connection was not established.", "The connection was not established (1006)"),
        (4401, "The API key of this session is no longer valid.", "key revoked or signed out (4401)"),
        (4000, "The caller left.", "caller left with a code of its own (4000)"),
        (4999, "A proxy said <so>.", "A proxy said &lt;so&gt; (4999)"),
    ],
)
def test_it_says_in_words_how_a_conversation_ended(
    desk: Client, alice: Member, code: int, reason: str, words: str
) -> None:
    session = begin(alice)
    RealtimeSession.objects.filter(pk=session.pk).update(
        ended_at=session.started_at + timedelta(seconds=90), close_code=code, close_reason=reason
    )
    for address in (reverse(SESSIONS), reverse("admin:realtime_realtimesession_change", args=[quote(session.pk)])):
        page = desk.get(address).content.decode()
        assert words in page
        assert "1 minute 30 seconds" in page


def test_it_filters_by_the_end(desk: Client, alice: Member) -> None:
    begin(alice)
    over = begin(alice)
    end(over)
    assert listed(desk, end="1000") == {over.pk}
    assert listed(desk, end="4401") == set()


def test_every_code_with_which_a_conversation_ends_has_words() -> None:
    codes = {value for name, value in vars(bridge).items() if name.isupper() and isinstance(value, int)}
    assert {NORMAL, LIFETIME_OVER} <= codes
    assert codes <= MEANINGS.keys()


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


def test_a_conversation_is_exported(desk: Client, alice: Member) -> None:
    session = begin(alice)
    at = session.started_at + timedelta(seconds=3)
    turn = {"started_at": at, "first_audio_ms": 500, "input_audio_ms": 1200, "output_audio_ms": 4000}
    Turn.objects.create(session=session, ordinal=1, status="completed", user_text="Hi", assistant_text="Hello.", **turn)
    Turn.objects.create(
        session=session,
        ordinal=2,
        status="cancelled",
        interrupted=True,
        user_text="And?",
        assistant_text="One. Two.",
        heard_text="One.",
        started_at=at + timedelta(seconds=9),
    )

    def exported(form: str) -> str:
        return desk.get(reverse("admin:realtime_export", args=[quote(session.pk), form])).content.decode()

    assert exported("txt") == "Caller: Hi\nAssistant: Hello.\nCaller: And?\nAssistant: One.\n"
    assert exported("srt").startswith(
        "1\n00:00:01,800 --> 00:00:03,500\nCaller: Hi\n\n2\n00:00:03,500 --> 00:00:07,500\nAssistant: Hello.\n"
    )
    whole = json.loads(exported("json"))
    assert whole["id"] == session.pk
    assert [turn["heard_text"] for turn in whole["turns"]] == ["", "One."]
    assert desk.get(reverse("admin:realtime_export", args=[quote(session.pk), "exe"])).status_code == 404
    assert Client().get(reverse("admin:realtime_export", args=[quote(session.pk), "txt"])).status_code == 302


def test_what_operators_ask_of_open_conversations_is_kept_for_their_process(desk: Client, alice: Member) -> None:
    session, over = begin(alice, served_by="host-1"), begin(alice, served_by="host-1")
    end(over)

    def ask(row: RealtimeSession, **form: str) -> str:
        page = desk.post(reverse("admin:realtime_ask", args=[quote(row.pk)]), form, follow=True)
        return words_of(page.content.decode())

    assert "Asked." in ask(session, kind="say", words="We close soon.")
    assert "Asked." in ask(session, kind="end", words="ignored")
    assert "at most 300 characters" in ask(session, kind="say", words="x" * 301)
    assert "at most 300 characters" in ask(session, kind="explode")
    assert "is over" in ask(over, kind="end")
    assert list(OperatorRequest.objects.values_list("kind", "words")) == [("say", "We close soon."), ("end", "")]
    assert "End it" not in words_of(
        desk.get(reverse("admin:realtime_realtimesession_change", args=[over.pk])).content.decode()
    )
    alice.user.is_staff = True
    alice.user.save()
    stranger = Client()
    stranger.force_login(alice.user)
    assert stranger.post(reverse("admin:realtime_ask", args=[quote(session.pk)]), {"kind": "end"}).status_code in (
        403,
        404,
    )


def test_all_conversations_of_an_account_are_deleted_once_that_is_confirmed(
    desk: Client, alice: Member, charlie: Member
) -> None:
    chosen, more, live, other = begin(alice), begin(alice), begin(alice), begin(charlie)
    for session in (chosen, more, other):
        end(session)
    asked = {"action": "delete_of_accounts", "_selected_action": chosen.pk}
    page = desk.post(reverse(SESSIONS), asked).content.decode()
    assert "2 conversations" in page
    assert RealtimeSession.objects.count() == 4
    desk.post(reverse(SESSIONS), {**asked, "confirmed": "yes"})
    assert set(RealtimeSession.objects.values_list("pk", flat=True)) == {live.pk, other.pk}
    (told,) = LogEntry.objects.filter(change_message__startswith="Deleted conversations")
    assert (told.object_id, told.change_message) == (str(alice.account.pk), "Deleted conversations: 2.")


def test_it_shows_what_a_conversation_used_and_asks_for_its_words(desk: Client, alice: Member) -> None:
    session = begin(alice)
    for ordinal in (1, 2):
        Turn.objects.create(session=session, ordinal=ordinal, status="completed")
    used = ((":1", "input_tokens", 20), (":2", "input_tokens", 7), (":2", "output_tokens", 5), ("", "images", 1))
    for request, unit, quantity in (*used, (":3", "input_tokens", 1000)):  # the last is of no turn of it
        UsageRecord.objects.create(
            account=alice.account,
            workspace=alice.workspace,
            caller="shop",
            operation="realtime",
            family="realtime",
            model="voice",
            request_id=f"{session.pk}{request}",
            unit=unit,
            quantity=quantity,
            unit_price_nano=10**7,
            cost_nano=quantity * 10**7,
        )
    page = desk.get(reverse("admin:realtime_realtimesession_change", args=[quote(session.pk)])).content.decode()
    assert "0.33 $: 1 images, 27 input tokens, 5 output tokens" in page
    shown = site.get_model_admin(RealtimeSession)
    before = shown.state(RealtimeSession.objects.all(), session.pk)
    session.refresh_from_db()
    assert session.watched_until > timezone.now()
    session.live_words = {"caller": "What is <this>", "reply": "", "quality": ""}
    session.save()
    assert shown.state(RealtimeSession.objects.all(), session.pk) != before
    page = desk.get(reverse("admin:realtime_realtimesession_change", args=[quote(session.pk)])).content.decode()
    assert "What is &lt;this&gt;" in page
