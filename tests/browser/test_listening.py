"""An operator listens in from the page of a conversation, and its caller sees and hears that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from .accessibility import violations
from .conftest import OpenPage
from .operators import check_fits, make_operator, sign_in
from .page import PATIENCE_MS, VoicePage
from .server import Server, running

LOUD_SIDES = """
const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (to, ...rest) {
  if (this.buffer && to === this.context.destination) {
    for (const side of [0, 1].filter((side) => Math.max(...this.buffer.getChannelData(side)) > 0.05)) {
      document.documentElement.classList.add(`is-loud-${side}`);
    }
  }
  return connect.call(this, to, ...rest);
};
"""
"""Notes on which sides what a page plays is loud: 0 is the left."""


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("heard"), MAX_LISTENERS="2", DEFAULT_VOICE="") as server:
        make_operator(server)
        yield server


@pytest.fixture
def desk(quiet_browser: Browser, open_server: Server) -> Iterator[Page]:
    with quiet_browser.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        page, complaints = context.new_page(), list[str]()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.add_init_script(LOUD_SIDES)
        sign_in(page, open_server)
        yield page
        assert complaints == []


def show(desk: Page, server: Server) -> None:
    """Open the page of the conversation that is open."""
    (session_id,) = server.row("select id from realtime_realtimesession where ended_at is null")
    desk.goto(f"http://127.0.0.1:{server.port}/admin/realtime/realtimesession/{str(session_id).replace('_', '_5F')}/")


def pictures(page: Page, screenshots: Path, name: str) -> None:
    for width in (390, 1280):
        check_fits(page, width)
        page.screenshot(path=screenshots / f"{name}-{width}.png")
    assert violations(page) == []


@pytest.mark.parametrize(("transport", "colours"), [("websocket", "light"), ("webrtc", "dark")])
def test_an_operator_listens_in_and_the_caller_is_told(
    spoken_page: OpenPage,
    open_server: Server,
    desk: Page,
    screenshots: Path,
    transport: str,
    colours: Literal["light", "dark"],
) -> None:
    voice: VoicePage = spoken_page(
        *([12.0, "What time is it?"] * 8), address=f"http://127.0.0.1:{open_server.port}/", transport=transport
    )
    for page in (voice.page, desk):
        page.emulate_media(color_scheme=colours)
    voice.talk()
    notice = voice.page.get_by_text("An operator is listening to this conversation.")
    expect(notice).to_be_hidden()
    show(desk, open_server)
    desk.get_by_role("button", name="Listen in").click()
    expect(desk.locator("#listen output")).to_have_text("You hear the conversation, about a second late.")
    expect(notice).to_be_visible()
    expect(voice.page.locator(".turn-text", has_text="An operator is now listening")).to_be_visible()
    desk.wait_for_selector("html.is-loud-0.is-loud-1")
    pictures(voice.page, screenshots, f"overheard-{colours}")
    pictures(desk, screenshots, f"listening-{colours}")

    desk.get_by_role("button", name="Stop listening").click()
    expect(notice).to_be_hidden()
    expect(desk.locator("#listen output")).to_have_text("You no longer listen in.")

    desk.get_by_role("button", name="Listen in").click()
    expect(notice).to_be_visible()
    desk.goto("about:blank")
    expect(notice).to_be_hidden()

    show(desk, open_server)
    desk.get_by_role("button", name="Listen in").click()
    expect(notice).to_be_visible()
    voice.page.click("#end")
    expect(notice).to_be_hidden()
    expect(desk.locator("#listen output")).to_have_text("Listening in has ended.")
