"""What operators see of accounts and conversations fits on desks and phones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from .operators import make_operator, sign_in
from .server import Server

WIDTHS = (390, 768, 1000, 1280)

FILL = """
from voiceapp.accounts.keys import new_key
from voiceapp.accounts.models import Account, UsageRecord
from voiceapp.realtime.models import RealtimeSession
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
"""


@pytest.fixture(scope="module")
def filled(server: Server) -> Server:
    make_operator(server)
    server.manage("shell", "--command", FILL)
    return server


@pytest.fixture
def desk(quiet_browser: Browser, filled: Server) -> Iterator[Page]:
    context = quiet_browser.new_context()
    page = context.new_page()
    sign_in(page, filled)
    yield page
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
    ],
)
def test_no_list_scrolls_sideways(desk: Page, filled: Server, place: str) -> None:
    desk.goto(f"http://127.0.0.1:{filled.port}/admin/{place}/")
    expect(desk.locator("#result_list tbody tr").first).to_be_visible()
    for width in WIDTHS:
        desk.set_viewport_size({"width": width, "height": 900})
        beside = desk.evaluate(
            """[document.documentElement.scrollWidth - innerWidth,
                ...[...document.querySelectorAll('.results')].map((list) => list.scrollWidth - list.clientWidth)]"""
        )
        assert max(beside) <= 0, width


@pytest.mark.parametrize("place", ["accounts/account", "accounts/usagerecord", "realtime/realtimesession"])
def test_no_page_of_one_scrolls_sideways(desk: Page, filled: Server, place: str) -> None:
    desk.goto(f"http://127.0.0.1:{filled.port}/admin/{place}/")
    desk.locator("#result_list tbody th a").first.click()
    for width in WIDTHS:
        desk.set_viewport_size({"width": width, "height": 900})
        assert desk.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width
