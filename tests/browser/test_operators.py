"""What operators see fits on desks and phones: whatever stands in a list, nothing waits beside the picture."""

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
from voiceapp.accounts.keys import new_key
from voiceapp.accounts.models import Account, UsageRecord
from voiceapp.realtime.models import RealtimeSession
from voiceapp.tasks.models import Task
from voiceapp.webhooks import store
from voiceapp.webhooks.events import Event, EventKind, publish
from voiceapp.webhooks.models import Delivery, WebhookEndpoint
account = Account.objects.create(name="A company with quite a long name")
workspace = account.workspaces.create(name="Production")
key, _ = new_key(workspace, "The telephone at the reception")
key.save()
RealtimeSession.objects.create(
    id="sess_1", account=account, workspace=workspace, api_key=key, model="qwen3.5-omni-flash-realtime",
    transport="websocket",
)
UsageRecord.objects.create(
    account=account, workspace=workspace, key=key, caller=str(key), operation="multimodal-embedding",
    family="embedding", model="a-model-with-quite-a-long-name", request_id="r", unit="input_tokens",
    quantity=1_000_000, unit_price_nano=70, cost_nano=70_000_000,
)
now = timezone.now()
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


@pytest.mark.parametrize(
    "place",
    [
        "accounts/account",
        "accounts/apikey",
        "accounts/usagerecord",
        "accounts/workspace",
        "auth/user",
        "realtime/realtimesession",
        "tasks/task",
        "webhooks/delivery",
        "webhooks/webhookendpoint",
    ],
)
def test_a_list_fits_every_screen_and_can_be_sorted(desk: Page, filled: Server, screenshots: Path, place: str) -> None:
    desk.goto(f"http://127.0.0.1:{filled.port}/admin/{place}/")
    expect(desk.locator("#result_list tbody tr").first).to_be_visible()
    for width in WIDTHS:
        check_list(desk, width)
        desk.screenshot(path=screenshots / f"list-{place.partition('/')[2]}-{width}.png")


@pytest.mark.parametrize("place", ["accounts/account", "accounts/usagerecord", "realtime/realtimesession"])
def test_no_page_of_one_scrolls_sideways(desk: Page, filled: Server, place: str) -> None:
    desk.goto(f"http://127.0.0.1:{filled.port}/admin/{place}/")
    desk.locator("#result_list tbody th a").first.click()
    desk.wait_for_url("**/change/")  # and for its style sheets
    for width in WIDTHS:
        desk.set_viewport_size({"width": width, "height": 900})
        assert desk.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width


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


def test_the_index_shows_its_figures_on_every_screen(desk: Page, filled: Server, screenshots: Path) -> None:
    desk.goto(f"http://127.0.0.1:{filled.port}/admin/")
    fits(desk, screenshots, "index")
    heights = desk.evaluate("[...document.querySelectorAll('#figures tr')].map((row) => row.offsetHeight)")
    assert max(heights) < 120, "a name is broken letter by letter"
    desk.set_viewport_size({"width": 390, "height": 900})
    heights = desk.evaluate("[...document.querySelectorAll('#figures tr')].map((row) => row.offsetHeight)")
    assert max(heights) < 200


def test_an_operator_makes_a_key_copies_it_and_revokes_it(desk: Page, filled: Server, screenshots: Path) -> None:
    desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    desk.goto(f"http://127.0.0.1:{filled.port}/admin/accounts/apikey/add/")
    desk.get_by_label("Workspace").select_option(index=1)
    desk.get_by_label("Name").fill("Kitchen")
    desk.get_by_role("button", name="Save").click()
    key = desk.get_by_label("Key of Kitchen").input_value()
    desk.get_by_role("button", name="Copy").click()
    expect(desk.get_by_role("status")).to_have_text("Copied.")
    assert desk.evaluate("navigator.clipboard.readText()") == key
    fits(desk, screenshots, "new-key")

    desk.get_by_role("link", name="I have copied it").click()
    desk.get_by_role("link", name="Kitchen", exact=True).click()
    desk.get_by_role("link", name="Revoke", exact=True).click()
    expect(desk.get_by_role("heading", name="Revoke this key?")).to_be_visible()
    expect(desk.get_by_role("listitem").filter(has_text="Kitchen")).to_contain_text("0 open conversations, never used")
    fits(desk, screenshots, "revoke-key")
    desk.get_by_role("button", name="Revoke").click()
    expect(desk.locator(".messagelist")).to_contain_text("Revoked 1 key.")


def fits(page: Page, screenshots: Path, name: str) -> None:
    page.wait_for_load_state()  # with its style sheets: its words are there before them
    for width in (390, 768, 1024, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width
        page.screenshot(path=screenshots / f"{name}-{width}.png")
