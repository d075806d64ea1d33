"""What operators see fits on desks and phones: whatever stands in a list, nothing waits beside the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, StorageState, expect

from tests.thorough import IS_THOROUGH

from .accessibility import violations
from .conftest import OpenWindow
from .operators import check_fits
from .server import Server

ADDRESSES = "[...document.querySelectorAll('#nav-sidebar a')].map((link) => link.pathname)"
ROWS = "[...document.querySelectorAll('#result_list th a')].map((link) => link.pathname)"
ADDS = "[...document.querySelectorAll('a[href$=\"/add/\"]')].map((link) => link.pathname).slice(0, 1)"

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
def desk(open_window: OpenWindow, filled: Server, operator_state: StorageState) -> Page:
    """A page that an operator has signed in on."""
    return open_window(storage_state=operator_state)


@pytest.mark.parametrize(
    ("colours", "widths", "rule"), [("light", (390, 768, 1280, 1920), ""), ("dark", (1280,), "color-contrast")]
)
def test_every_page_fits_every_screen_and_everybody(
    desk: Page, filled: Server, screenshots: Path, colours: Literal["light", "dark"], widths: tuple[int, ...], rule: str
) -> None:
    """In the dark, only colours are other ones."""
    root = f"http://127.0.0.1:{filled.port}/admin/"
    desk.emulate_media(color_scheme=colours)
    desk.goto(root)
    lists = [link for link in desk.evaluate(ADDRESSES) if link.startswith("/admin/") and link != "/admin/"]
    assert len(lists) > 10
    for address in ["/admin/", *lists]:
        desk.goto(f"http://127.0.0.1:{filled.port}{address}")
        check_page(desk, widths, rule, screenshots, f"{address.strip('/').replace('/', '-')}-{colours}")
        for link in desk.evaluate(ROWS)[:1] + desk.evaluate(ADDS):
            desk.goto(f"http://127.0.0.1:{filled.port}{link}")
            check_page(desk, widths, rule, screenshots, f"{link.strip('/').replace('/', '-')}-{colours}")


def test_search_finds_rows_by_their_ids(desk: Page, filled: Server) -> None:
    desk.goto(f"http://127.0.0.1:{filled.port}/admin/")
    desk.keyboard.press("Control+k")
    field = desk.locator("[x-ref=searchInputCommand]")
    expect(field).to_be_focused()
    field.press_sequentially("550f3353")
    expect(desk.get_by_role("link", name="550f3353-60e7-4d53-b52c-90a396d3fce8")).to_be_visible()


def test_an_operator_makes_a_key_copies_it_and_revokes_it(desk: Page, filled: Server, screenshots: Path) -> None:
    desk.goto(f"http://127.0.0.1:{filled.port}/admin/accounts/apikey/add/")
    desk.get_by_label("Workspace").select_option(index=1)
    desk.get_by_label("Name").fill("Kitchen")
    desk.get_by_role("button", name="Save").click()
    key = desk.get_by_label("Key of Kitchen").input_value()
    desk.get_by_role("button", name="Copy").click()
    expect(desk.get_by_role("status")).to_have_text("Copied.")
    assert desk.evaluate("navigator.clipboard.readText()") == key
    check_fits(desk, 390)

    desk.get_by_role("link", name="I have copied it").click()
    desk.get_by_role("link", name="Kitchen", exact=True).click()
    desk.get_by_role("link", name="Revoke", exact=True).click()
    expect(desk.get_by_role("heading", name="Revoke this key?")).to_be_visible()
    expect(desk.get_by_role("listitem").filter(has_text="Kitchen")).to_contain_text("0 open conversations, never used")
    check_fits(desk, 390)
    desk.get_by_role("button", name="Revoke").click()
    expect(desk.get_by_text("Revoked 1 key.")).to_be_visible()


def check_page(page: Page, widths: tuple[int, ...], rule: str, screenshots: Path, name: str) -> None:
    """Assert that a page fits windows of these widths, and that axe finds nothing wrong with it."""
    for width in widths:
        check_fits(page, width)
        if IS_THOROUGH:  # for people to look at
            page.screenshot(path=screenshots / f"{name}-{width}.png")
    assert violations(page, only=rule) == []
