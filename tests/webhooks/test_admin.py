"""Endpoints and their log in the operators' site."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.web import words_of
from voiceapp.webhooks import store
from voiceapp.webhooks.events import MEANINGS, Event, EventKind, publish
from voiceapp.webhooks.log_admin import MOST_LISTED
from voiceapp.webhooks.models import Attempt, Delivery, WebhookEndpoint

SECRET = re.compile(r"whsec_[A-Za-z0-9+/]{43}=")
URL = "http://127.0.0.1:9/hook"
ADD = "admin:webhooks_webhookendpoint_add"
ALL = "admin:webhooks_webhookendpoint_changelist"
LOG = "admin:webhooks_delivery_changelist"


@pytest.fixture
def endpoint(alice: Member) -> WebhookEndpoint:
    made, _ = store.create(alice.workspace.pk, url=URL, events=[EventKind.TASK_FINISHED])
    return made


def wanted(member: Member, **changes: object) -> dict[str, object]:
    return {"workspace": member.workspace.pk, "url": URL, "description": "", "events": ["task.finished"], **changes}


def press(desk: Client, button: str, endpoint: WebhookEndpoint, **form: str) -> HttpResponse:
    return desk.post(reverse(f"admin:webhooks_{button}", args=[endpoint.pk]), form, follow=True)


def test_a_new_endpoint_shows_its_secret_once_and_reloading_makes_no_other(desk: Client, alice: Member) -> None:
    moved = desk.post(reverse(ADD), wanted(alice))
    assert moved.status_code == 302
    page = desk.get(moved.url)
    assert "no-store" in page.headers["Cache-Control"]
    (secret,) = set(SECRET.findall(page.content.decode()))
    row = WebhookEndpoint.objects.get()
    assert row.secrets(timezone.now()) == [secret]
    assert (row.events, row.url) == (["task.finished"], URL)

    again = desk.get(moved.url, follow=True)
    assert "was shown already" in again.content.decode()
    for address in (
        reverse(ALL),
        reverse("admin:webhooks_webhookendpoint_change", args=[row.pk]),
        reverse("admin:index"),
    ):
        assert not SECRET.search(desk.get(address).content.decode())
    assert not SECRET.search(str(desk.session.items()))
    assert WebhookEndpoint.objects.get().secrets(timezone.now()) == [secret]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"url": "http://169.254.169.254/latest"}, "does not lead to a public address"),
        ({"url": "nothing"}, "must begin with http"),
        ({"events": []}, "This field is required"),
        ({"events": ["vault.opened"]}, "not one of the available choices"),
        ({"description": "x" * 257}, "at most 256 characters"),
    ],
)
def test_a_wrong_form_is_answered_in_a_sentence(
    desk: Client, alice: Member, wrong: dict[str, object], said: str
) -> None:
    page = desk.post(reverse(ADD), wanted(alice, **wrong))
    assert page.status_code == 200
    assert said in page.content.decode()
    assert not WebhookEndpoint.objects.exists()


def test_every_kind_of_event_is_explained_where_it_is_chosen(desk: Client, endpoint: WebhookEndpoint) -> None:
    publish(endpoint.workspace_id, [Event(EventKind.TASK_FINISHED, "task-1")])
    form, log = desk.get(reverse(ADD)).content.decode(), desk.get(reverse(LOG)).content.decode()
    for kind in EventKind:
        assert f"{kind}: {MEANINGS[kind]}" in form
        assert f"{kind}: {MEANINGS[kind]}" in log
    assert desk.get(reverse(LOG), {"kind": "task.finished"}).context["cl"].result_count == 1
    assert desk.get(reverse(LOG), {"kind": "session.created"}).context["cl"].result_count == 0


DEVELOPMENT = ["127.0.0.1/32", "::1/128"]
"""What `WEBHOOK_ALLOWED_NETWORKS` is with DEBUG=1, unless it is set."""


@pytest.mark.parametrize("url", ["http://localhost:9/hook", "http://127.0.0.1:9/hook", "http://[::1]:9/hook"])
def test_in_development_a_receiver_on_this_machine_is_taken_with_a_warning(
    desk: Client, alice: Member, settings: Settings, caplog: pytest.LogCaptureFixture, url: str
) -> None:
    settings.DEBUG, settings.WEBHOOK_ALLOWED_NETWORKS = True, DEVELOPMENT
    assert "receivers on this machine are allowed too" in desk.get(reverse(ADD)).content.decode()

    page = desk.post(reverse(ADD), wanted(alice, url=url), follow=True).content.decode()

    assert "This receiver is on this machine. That is allowed because DEBUG=1; in production it is refused" in page
    assert WebhookEndpoint.objects.get().url == url
    assert "allowed because DEBUG=1" in caplog.text
    assert "/hook" not in caplog.text


@pytest.mark.parametrize("url", ["http://localhost:9/hook", "http://127.0.0.1:9/hook"])
def test_in_production_a_receiver_on_this_machine_is_refused(
    desk: Client, alice: Member, settings: Settings, url: str
) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    page = desk.post(reverse(ADD), wanted(alice, url=url)).content.decode()
    assert "does not lead to a public address" in page
    assert "DEBUG" not in desk.get(reverse(ADD)).content.decode()


def test_the_twenty_first_is_refused(desk: Client, alice: Member) -> None:
    for _ in range(store.MAX_ENDPOINTS):
        store.create(alice.workspace.pk, url=URL, events=[EventKind.TASK_FINISHED])
    page = desk.post(reverse(ADD), wanted(alice), follow=True)
    assert "20 webhook endpoints" in page.content.decode()
    assert WebhookEndpoint.objects.count() == store.MAX_ENDPOINTS


def test_it_is_edited_and_what_it_counted_stays(desk: Client, endpoint: WebhookEndpoint) -> None:
    WebhookEndpoint.objects.update(consecutive_fail=3)
    change = {"url": f"{URL}/2", "description": "Ours", "events": ["session.created", "task.finished"]}
    page = desk.post(reverse("admin:webhooks_webhookendpoint_change", args=[endpoint.pk]), change)
    assert page.status_code == 302
    row = WebhookEndpoint.objects.get()
    assert (row.url, row.description, row.events) == (f"{URL}/2", "Ours", ["session.created", "task.finished"])
    assert row.consecutive_fail == 3
    assert row.secret_sealed == endpoint.secret_sealed


def test_it_is_disabled_with_a_reason_and_enabled_again(desk: Client, endpoint: WebhookEndpoint) -> None:
    publish(endpoint.workspace_id, [Event(EventKind.TASK_FINISHED, "task-1")])
    page = press(desk, "disable", endpoint).content.decode()
    assert "By hand" in page
    assert Delivery.objects.get().status == "CANCELED"
    assert "Enable" in words_of(page)
    assert "Send a test" not in page
    assert "Disable" in words_of(press(desk, "enable", endpoint).content.decode())
    assert WebhookEndpoint.objects.get().status == "ACTIVE"


def test_a_rotated_secret_is_shown_once_and_the_old_one_may_sign_on(desk: Client, endpoint: WebhookEndpoint) -> None:
    old = endpoint.secrets(timezone.now())
    (new,) = set(SECRET.findall(press(desk, "rotate", endpoint, keep_old="on").content.decode()))
    row = WebhookEndpoint.objects.get()
    assert row.secrets(timezone.now()) == [new, *old]
    assert row.secrets(timezone.now() + timedelta(hours=25)) == [new]
    (newer,) = set(SECRET.findall(press(desk, "rotate", endpoint).content.decode()))
    assert WebhookEndpoint.objects.get().secrets(timezone.now()) == [newer]


def test_a_test_shows_what_the_receiver_did(desk: Client, endpoint: WebhookEndpoint) -> None:
    page = press(desk, "test", endpoint, kind="session.thread_idled").content.decode()
    assert "127.0.0.1 could not be reached" in page
    assert "1 attempts, 1 failed" in page, "the chart counts it"
    assert page.count("&quot;sthr_sample&quot;") == 4, "a sample of each kind of threads"
    tried = Delivery.objects.get()
    assert (tried.status, tried.event.kind, tried.tries.count()) == ("FAILED", "webhook.test", 1)
    assert json.loads(tried.event.body)["data"]["type"] == "session.thread_idled"
    assert store.replay_failed(endpoint, tried.event.created_at) == 0
    endpoint.refresh_from_db()
    assert endpoint.consecutive_fail == 0
    address = reverse("admin:webhooks_test", args=[endpoint.pk])
    assert desk.post(address, {"kind": "vault.created"}).status_code == 404


def test_the_log_tells_attempts_apart_and_counts_them_all(desk: Client, endpoint: WebhookEndpoint) -> None:
    publish(endpoint.workspace_id, [Event(EventKind.TASK_FINISHED, "task-1")])
    row = Delivery.objects.get()
    first = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    for number in range(3):
        at = first + timedelta(seconds=number)
        Attempt.objects.create(delivery=row, at=at, duration_ms=1, error="127.0.0.1 could not be reached.")
    address = reverse("admin:webhooks_delivery_change", args=[row.pk])
    waiting = desk.get(address).content.decode()
    assert "Next attempt" in waiting
    assert re.search(r", number 1 of 10; given up about 41 hours 36 minutes", waiting)
    Delivery.objects.update(status="FAILED", finish_at=datetime(2026, 3, 5, 6, 7, 8, tzinfo=UTC), attempts=1)
    page = desk.get(address).content.decode()
    assert "Next attempt" not in page
    assert [f"2026-03-04 05:06:{second:02}" in page for second in (7, 8, 9)] == [True] * 3
    assert words_of(page).count("– 1 127.0.0.1 could not be reached.") == 3
    assert "2026-03-05 06:07:08" in page
    assert "+00:00" not in page
    assert "Attempts 3 " in words_of(page)
    assert "task.finished 3 " in words_of(desk.get(reverse(LOG)).content.decode())


def test_the_log_offers_some_endpoints_by_name_and_finds_any(desk: Client, endpoint: WebhookEndpoint) -> None:
    publish(endpoint.workspace_id, [Event(EventKind.TASK_FINISHED, "task-of-the-oldest")])
    for number in range(MOST_LISTED + 5):
        WebhookEndpoint.objects.create(
            workspace_id=endpoint.workspace_id,
            url=f"https://{number}.example.org/hook",
            events=["task.finished"],
            description="Payments" if number == 24 else "",
            secret_sealed=endpoint.secret_sealed,
        )
    page = desk.get(reverse(LOG)).content.decode()
    assert page.count("?endpoint=wep_") == MOST_LISTED
    assert "Payments" in words_of(page)
    assert "23.example.org/hook" in words_of(page)
    assert "task.finished" in desk.get(reverse(LOG), {"q": "task-of-the-oldest"}).content.decode()

    [link] = re.findall(
        rf'href="([^"]*endpoint={endpoint.public_id})">deliveries<', desk.get(reverse(ALL)).content.decode()
    )
    page = desk.get(link).content.decode()
    assert "1 delivery" in words_of(page)
    assert "127.0.0.1:9/hook" in words_of(page)
    assert desk.get(reverse(LOG), {"endpoint": "wep_none"}).context["cl"].result_count == 0


def test_deleting_keeps_the_log(desk: Client, endpoint: WebhookEndpoint) -> None:
    publish(endpoint.workspace_id, [Event(EventKind.TASK_FINISHED, "task-1")])
    address = reverse("admin:webhooks_webhookendpoint_delete", args=[endpoint.pk])
    assert desk.get(address).status_code == 200
    desk.post(address, {"post": "yes"})
    assert WebhookEndpoint.objects.get().deleted_at is not None
    assert URL not in desk.get(reverse(ALL)).content.decode()
    assert "task.finished" in desk.get(reverse(LOG)).content.decode()
    assert Delivery.objects.get().status == "CANCELED"


def test_the_log_is_filtered_looked_into_and_sent_again(desk: Client, endpoint: WebhookEndpoint) -> None:
    publish(endpoint.workspace_id, [Event(EventKind.TASK_FINISHED, f"task-{number}") for number in range(3)])
    rows = list(Delivery.objects.order_by("pk"))
    Delivery.objects.filter(pk__in=[rows[0].pk, rows[1].pk]).update(
        status="FAILED", finish_at=timezone.now(), failure_reason="The receiver responded with status 500.", attempts=10
    )
    Attempt.objects.create(delivery=rows[0], status_code=500, duration_ms=12, answer_start="<script>alert(1)</script>")
    failed = desk.get(reverse(LOG), {"status__exact": "FAILED"}).content.decode()
    assert failed.count("The receiver responded with status 500.") == 2

    page = desk.get(reverse("admin:webhooks_delivery_change", args=[rows[0].pk])).content.decode()
    assert "task-0" in page
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert "Send again" in words_of(page)
    again = desk.post(reverse("admin:webhooks_replay", args=[rows[0].pk]), follow=True).content.decode()
    assert "1 on the way again" in again
    assert "Send again" not in words_of(again)

    chosen = {"action": "send_again", "_selected_action": [row.pk for row in rows]}
    page = desk.post(reverse(LOG), chosen, follow=True).content.decode()
    assert "1 on the way again. 2 were left alone" in page
    assert set(Delivery.objects.values_list("status", flat=True)) == {"PENDING"}


def test_buttons_want_a_post_and_the_right(desk: Client, endpoint: WebhookEndpoint, alice: Member) -> None:
    for button in ("enable", "disable", "rotate", "test"):
        assert desk.get(reverse(f"admin:webhooks_{button}", args=[endpoint.pk])).status_code == 405
    alice.user.is_staff = True
    alice.user.save()
    alice.user.user_permissions.set(Permission.objects.filter(codename__in=["view_webhookendpoint", "view_delivery"]))
    looking = Client()
    looking.force_login(alice.user)
    for button in ("enable", "disable", "rotate", "test"):
        assert looking.post(reverse(f"admin:webhooks_{button}", args=[endpoint.pk])).status_code == 403
    page = looking.get(reverse("admin:webhooks_webhookendpoint_change", args=[endpoint.pk])).content.decode()
    assert 'value="Rotate the secret"' not in page
    assert looking.get(reverse(LOG)).status_code == 200
