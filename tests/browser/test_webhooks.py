"""An operator's way through webhooks: made, tried out, failing, disabled for a reason, enabled, sent again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from playwright.sync_api import Page, expect
from standardwebhooks import Webhook

from tests.web import everywhere, listening_beside

from .conftest import OpenWindow
from .operators import check_fits, make_operator, sign_in
from .page import PATIENCE_MS
from .server import Server, running

HAPPEN = """
import django
django.setup()
from voiceapp.accounts.models import Workspace
from voiceapp.webhooks.events import Event, EventKind, publish
publish(Workspace.objects.order_by("pk").first().pk, [Event(EventKind.TASK_FINISHED, "task-1")])
"""


class Receiver:
    """Somebody's receiver; `status` is what it responds with."""

    def __init__(self) -> None:
        self.origin, self.status = "", 200
        self.calls: list[tuple[bytes, dict[str, str]]] = []

    async def take(self, request: web.Request) -> web.Response:
        self.calls.append((await request.read(), {name.lower(): value for name, value in request.headers.items()}))
        return web.Response(status=self.status, text="so says the receiver")


@pytest.fixture(scope="module")
def desk_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("webhooks")
    with running(place, WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8", WEBHOOK_RETRY_SCHEDULE="0.1") as server:
        make_operator(server)
        server.manage("createkey", "--account", "Acme")
        yield server


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with listening_beside(everywhere(receiver.take)) as receiver.origin:
        yield receiver


@pytest.fixture
def desk(open_window: OpenWindow, desk_server: Server) -> Page:
    """A page on which an operator is signed in."""
    page = open_window(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE_MS)
    sign_in(page, desk_server)
    return page


def messages(page: Page) -> Any:
    return page.locator("#main")


def test_an_operator_walks_through_the_life_of_an_endpoint(
    desk: Page, desk_server: Server, receiver: Receiver, screenshots: Path
) -> None:
    desk.get_by_role("link", name="Webhook endpoints", exact=True).first.click()
    desk.locator("a[href$='/add/']").first.click()
    desk.get_by_label("Workspace").select_option(label="Acme / Default")
    desk.get_by_label("Address").fill(f"{receiver.origin}/hook")
    desk.get_by_label("task.finished").check()
    desk.get_by_role("button", name="Save").click()

    secret = desk.get_by_label("Signing secret").input_value()
    desk.get_by_role("button", name="Copy").click()
    expect(desk.get_by_role("status")).to_have_text("Copied.")
    assert desk.evaluate("navigator.clipboard.readText()") == secret
    desk.screenshot(path=screenshots / "webhooks-secret.png")
    desk.reload()
    expect(messages(desk)).to_contain_text("was shown already")
    assert secret not in desk.content()

    desk.get_by_role("button", name="Send a test").click()
    expect(messages(desk)).to_contain_text("The receiver responded with status 200")
    expect(messages(desk)).to_contain_text("so says the receiver")
    body, headers = receiver.calls[-1]
    assert Webhook(secret).verify(body, headers)["data"]["type"] == "webhook.test"

    receiver.status = 410
    desk_server.manage("shell", "--command", HAPPEN)
    endpoint = desk.url
    desk.get_by_role("link", name="deliveries", exact=True).click()
    failed = desk.get_by_role("row").filter(has_text="Failed").last
    until_seen(desk, failed)
    desk.screenshot(path=screenshots / "webhooks-log.png")
    check_fits(desk, 1280)
    desk.goto(endpoint)
    expect(messages(desk)).to_contain_text("gone for good (410)")
    desk.screenshot(path=screenshots / "webhooks-disabled.png", full_page=True)

    receiver.status = 200
    desk.get_by_role("button", name="Enable").click()
    expect(messages(desk)).to_contain_text("Enabled")
    desk.get_by_role("link", name="deliveries", exact=True).click()
    desk.get_by_role("row").filter(has_text="Failed").last.get_by_role("link").first.click()
    expect(desk.locator("#tries-group")).to_contain_text("410")
    expect(desk.locator("#tries-group td.field-answer").first).to_have_text("so says the receiver")
    expect(desk.get_by_text("Next attempt")).to_have_count(0)
    desk.screenshot(path=screenshots / "webhooks-delivery.png", full_page=True)
    desk.get_by_role("button", name="Send again").click()
    expect(messages(desk)).to_contain_text("1 on the way again")
    until_seen(desk, desk.get_by_text("Succeeded", exact=True))
    assert json.loads(receiver.calls[-1][0])["data"]["type"] == "task.finished"
    assert receiver.calls[-1][1]["webhook-id"] == receiver.calls[-2][1]["webhook-id"]


def test_the_pages_fit_a_phone(desk: Page, desk_server: Server, screenshots: Path) -> None:
    desk.set_viewport_size({"width": 390, "height": 844})
    for name in ("webhookendpoint", "delivery"):
        desk.goto(f"http://127.0.0.1:{desk_server.port}/admin/webhooks/{name}/")
        desk.screenshot(path=screenshots / f"webhooks-{name}-390.png")
        check_fits(desk, 390)


def until_seen(page: Page, wanted: Any) -> None:
    """Reload until the sender has done its part."""
    for _ in range(40):
        if wanted.count():
            return
        page.wait_for_timeout(100)
        page.reload()
    expect(wanted).to_be_visible()
