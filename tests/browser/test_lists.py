"""Operators' lists on desks and phones: whatever stands in them, nothing waits beside the picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from .operators import check_list
from .server import Server

WIDTHS = (390, 768, 1000, 1024, 1280, 1366, 1440, 1600, 1920)

FILL = """
from django.utils import timezone
from voiceapp.accounts.models import Account
from voiceapp.tasks.models import Task
from voiceapp.webhooks import store
from voiceapp.webhooks.events import Event, EventKind, publish
from voiceapp.webhooks.models import Delivery, WebhookEndpoint
now = timezone.now()
workspace = Account.objects.create(name="Another company with quite a long name").workspaces.create(name="Production")
url = "https://hooks.a-rather-long-company-name.example.org:8443/receivers/voiceapp/production?tenant=4711"
store.create(workspace.pk, url=url, events=list(EventKind))
publish(workspace.pk, [Event(EventKind.THREAD_RUN_STARTED, "sess_1", "sthr_1")])
why = "hooks.a-rather-long-company-name.example.org could not be reached."
Delivery.objects.update(status="FAILED", finish_at=now, failure_reason=why)
WebhookEndpoint.objects.update(status="DISABLED", disabled_reason="REDIRECT_RESPONSE", last_success_at=now)
Task.objects.create(
    task_id="550f3353-60e7-4d53-b52c-90a396d3fce8", account=workspace.account, workspace=workspace,
    kind="audio/tts/synthesis",
    model_name="a-model-with-quite-a-long-name", order={}, status="FAILED", submitted_at=now, scheduled_at=now,
    ended_at=now, code="InvalidParameter.DataFetch",
)
"""


@pytest.fixture(scope="module")
def filled(server: Server) -> Server:
    server.manage("shell", "--command", FILL)
    return server


@pytest.fixture
def desk(quiet_browser: Browser, filled: Server, operator_state: StorageState) -> Iterator[Page]:
    context = quiet_browser.new_context(storage_state=operator_state)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("place", ["webhooks/webhookendpoint", "webhooks/delivery", "tasks/task"])
def test_a_list_fits_every_screen_and_can_be_sorted(desk: Page, filled: Server, screenshots: Path, place: str) -> None:
    desk.goto(f"http://127.0.0.1:{filled.port}/admin/{place}/")
    expect(desk.locator("#result_list tbody tr").first).to_be_visible()
    for width in WIDTHS:
        check_list(desk, width)
        desk.screenshot(path=screenshots / f"list-{place.partition('/')[2]}-{width}.png")


def test_an_endpoints_form_and_an_event_fit(desk: Page, filled: Server) -> None:
    for place in ("webhooks/webhookendpoint", "webhooks/delivery"):
        desk.goto(f"http://127.0.0.1:{filled.port}/admin/{place}/")
        desk.locator("#result_list tbody th a").click()
        expect(desk.locator("#content-main .readonly").first).to_be_visible()
        for width in (390, 768, 1000):
            desk.set_viewport_size({"width": width, "height": 900})
            right = desk.evaluate(
                "Math.max(...[...document.querySelectorAll('#content-main :is(input, td, .readonly)')]"
                ".map(e => e.getBoundingClientRect().right))"
            )
            assert right <= width, (place, width)


def test_a_secret_and_its_words_fit_a_phone(desk: Page, filled: Server) -> None:
    desk.set_viewport_size({"width": 390, "height": 844})
    desk.goto(f"http://127.0.0.1:{filled.port}/admin/webhooks/webhookendpoint/")
    desk.locator("#result_list tbody th a").click()
    desk.get_by_role("button", name="Rotate the secret").click()
    expect(desk.get_by_label("Signing secret")).to_be_visible()
    beside = desk.evaluate(
        "(content => Math.max(...[...content.querySelectorAll('*')].map(e => e.getBoundingClientRect().right))"
        " - content.getBoundingClientRect().right)(document.querySelector('#content-main'))"
    )
    assert beside <= 0
