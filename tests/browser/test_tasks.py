"""An operator looks at tasks while they are worked on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenWindow
from .operators import make_operator, sign_in
from .server import Server, running

CREATE = """
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.keys import new_key
from voiceapp.accounts.models import Account
from voiceapp.tasks import store
from voiceapp.tasks.kinds import Payload, kind_at
workspace = Account.objects.create(name="Acme").workspaces.create(name="Default")
key, _ = new_key(workspace, "bench")
key.save()
caller = Caller(workspace.account_id, workspace.pk, key.pk, None, False, "bench")
text = "Rain falls on the lighthouse all day. " * 400
order = Payload("tts-1", [{"text": text}], {"voice": "", "format": "wav", "rate": 1.0})
store.accept(caller, kind_at("audio/tts/synthesis"), order, request_id="browser")
"""


@pytest.fixture(scope="module")
def desk_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("tasks")) as server:
        make_operator(server)
        yield server


@pytest.fixture
def desk(open_window: OpenWindow, desk_server: Server) -> Page:
    page = open_window(viewport={"width": 1280, "height": 900})
    sign_in(page, desk_server)
    return page


def test_a_task_is_seen_to_run_and_to_end_without_reloading(desk: Page, desk_server: Server, screenshots: Path) -> None:
    desk_server.manage("shell", "--command", CREATE)
    desk.goto(f"http://127.0.0.1:{desk_server.port}/admin/tasks/task/")
    desk.evaluate("window.isTheSamePage = true")
    progress = desk.locator("#result_list td.field-done")
    expect(progress).not_to_have_text("0%")
    desk.screenshot(path=screenshots / "tasks-live.png")
    expect(desk.locator("#result_list td.field-shown_status")).to_have_text("Succeeded", timeout=60_000)
    expect(progress).to_have_text("100%")
    assert desk.evaluate("window.isTheSamePage")
    desk.locator("#result_list tbody th a").first.click()
    desk.wait_for_url("**/change/")
    expect(desk.get_by_text("100%")).to_be_visible()
    with desk.expect_download() as download:
        desk.get_by_role("link", name=".wav").first.click()
    assert download.value.path().read_bytes().startswith(b"RIFF")
    for width in (1280, 390):
        desk.set_viewport_size({"width": width, "height": 900})
        assert desk.evaluate("document.documentElement.scrollWidth") == width
        desk.screenshot(path=screenshots / f"task-{width}.png", full_page=True)
