"""Operators' lists on desks and phones: whatever stands in them, nothing waits beside the picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from .operators import make_operator, sign_in
from .server import Server, running

FILL = """
from django.utils import timezone
from voiceapp.accounts.models import Account
from voiceapp.tasks.models import Task
from voiceapp.webhooks import store
from voiceapp.webhooks.events import Happening, Kind, publish
from voiceapp.webhooks.models import Delivery, WebhookEndpoint
now = timezone.now()
workspace = Account.objects.create(name="A company with quite a long name").workspaces.create(name="Production")
url = "https://hooks.a-rather-long-company-name.example.org:8443/receivers/voiceapp/production?tenant=4711"
store.create(workspace.pk, url=url, events=list(Kind))
publish(workspace.pk, [Happening(Kind.THREAD_RUN_STARTED, "sess_1", "sthr_1")])
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
def desk_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("lists"), TASK_ENGINE="worker") as server:
        make_operator(server)
        server.manage("shell", "--command", FILL)
        yield server


@pytest.fixture
def desk(quiet_browser: Browser, desk_server: Server) -> Iterator[Page]:
    context = quiet_browser.new_context()
    page = context.new_page()
    sign_in(page, desk_server)
    yield page
    context.close()


def test_no_list_scrolls_sideways(desk: Page, desk_server: Server, screenshots: Path) -> None:
    for place in ("webhooks/webhookendpoint", "webhooks/delivery", "tasks/task"):
        desk.goto(f"http://127.0.0.1:{desk_server.port}/admin/{place}/")
        for width in (390, 768, 1000, 1280, 1366, 1440, 1600, 1920):
            desk.set_viewport_size({"width": width, "height": 900})
            beside = desk.evaluate("(list => list.scrollWidth - list.clientWidth)(document.querySelector('.results'))")
            beside += desk.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert beside <= 0, (place, width)
            desk.screenshot(path=screenshots / f"list-{place.partition('/')[2]}-{width}.png")


def test_an_endpoints_form_and_an_event_fit(desk: Page, desk_server: Server) -> None:
    for place in ("webhooks/webhookendpoint", "webhooks/delivery"):
        desk.goto(f"http://127.0.0.1:{desk_server.port}/admin/{place}/")
        desk.locator("#result_list tbody th a").click()
        expect(desk.locator("#content-main .readonly").first).to_be_visible()
        for width in (390, 768, 1000):
            desk.set_viewport_size({"width": width, "height": 900})
            right = desk.evaluate(
                "Math.max(...[...document.querySelectorAll('#content-main :is(input, td, .readonly)')]"
                ".map(e => e.getBoundingClientRect().right))"
            )
            assert right <= width, (place, width)


def test_a_secret_and_its_words_fit_a_phone(desk: Page, desk_server: Server) -> None:
    desk.set_viewport_size({"width": 390, "height": 844})
    desk.goto(f"http://127.0.0.1:{desk_server.port}/admin/webhooks/webhookendpoint/")
    desk.locator("#result_list tbody th a").click()
    desk.get_by_role("button", name="Rotate the secret").click()
    expect(desk.get_by_label("Signing secret")).to_be_visible()
    beside = desk.evaluate(
        "(content => Math.max(...[...content.querySelectorAll('*')].map(e => e.getBoundingClientRect().right))"
        " - content.getBoundingClientRect().right)(document.querySelector('#content-main'))"
    )
    assert beside <= 0
