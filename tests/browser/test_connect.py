"""The page "Connect your program" in a browser, and the page among its programs: copied as printed, it talks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, StorageState, expect

from .conftest import launch
from .page import PATIENCE_MS
from .server import Server
from .speech import write_microphone

QUESTION = "What is twelve times twelve?"
REPLY = "12 times 12 is 144."


class Site(BaseHTTPRequestHandler):
    """A page of a developer's own."""

    def __init__(self, page: str, *args: object) -> None:
        self._page = page.encode()
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(self._page)))
        self.end_headers()
        self.wfile.write(self._page)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def printed(quiet_browser: Browser, server: Server, operator_state: StorageState) -> Iterator[str]:
    """The program for browsers, with a key that a person makes on the page."""
    server.manage("createkey", "--account", "Acme")  # the account that an operator talks in the name of
    context = quiet_browser.new_context(storage_state=operator_state)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/docs/connect")
    page.get_by_role("button", name="Make a key").click()
    expect(page.get_by_role("status")).to_contain_text("This is a new key")
    yield page.locator("#browser-html [data-program]").text_content() or ""
    context.close()


def test_the_page_that_talks_is_copied_and_talks(printed: str, playwright: Playwright, tmp_path: Path) -> None:
    site = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, printed))
    threading.Thread(target=site.serve_forever, daemon=True).start()
    browser = launch(playwright, write_microphone(tmp_path / "microphone.wav", 2.0, QUESTION, 60.0))
    try:
        page = browser.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{site.server_port}/")
        page.click("button")
        expect(page.locator("pre")).to_contain_text(REPLY, timeout=PATIENCE_MS)
        assert complaints == []
    finally:
        browser.close()
        site.shutdown()
        site.server_close()


def test_a_program_is_found_by_its_address_and_copied(quiet_browser: Browser, server: Server) -> None:
    context = quiet_browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/docs/connect#openai-chat-py")
    program = page.locator("#openai-chat-py [data-program]")
    expect(program).to_be_visible()
    page.locator("#openai-chat-py").get_by_role("button", name="Copy").last.click()
    expect(page.locator("#openai-chat-py").get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == program.text_content()
    page.locator(".side-open").get_by_role("link", name="Pipecat").click()
    expect(page.locator("#pipecat-bot-py [data-program]")).to_be_visible()
    context.close()


def test_programs_are_read_without_scripts(quiet_browser: Browser, server: Server) -> None:
    context = quiet_browser.new_context(java_script_enabled=False, viewport={"width": 320, "height": 640})
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/docs/connect")
    page.get_by_text("curl", exact=True).last.click()
    expect(page.locator("#curl-sh [data-program]")).to_be_visible()
    assert page.get_by_role("button").count() == 0
    context.close()
