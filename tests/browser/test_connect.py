"""The page "Connect your program" in a browser, and the page among its programs: copied as printed, it talks."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Playwright, StorageState, expect

from tests.ports import free_port

from .conftest import OpenWindow, launch
from .page import PATIENCE_MS
from .server import Server
from .speech import write_microphone
from .test_aoq_examples import LOUD

QUESTION = "What is twelve times twelve?"
REPLY = "12 times 12 is 144."


@pytest.fixture
def site(open_window: OpenWindow, server: Server, operator_state: StorageState, tmp_path: Path) -> Iterator[str]:
    """The address of the page for browsers on a server of its own, both as printed, with a key made on the page."""
    server.manage("createkey", "--account", "Acme")  # the account that an operator talks in the name of
    page = open_window(storage_state=operator_state)
    page.goto(f"http://127.0.0.1:{server.port}/docs/connect")
    page.get_by_role("button", name="Make a key").click()
    expect(page.get_by_role("status")).to_contain_text("This is a new key")
    page.locator(".new-key").get_by_role("button", name="Copy").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator(".new-key code").text_content() != ""
    port = str(free_port())
    for name in ("browser.html", "browser_server.py"):
        program = page.locator(f"#{name.replace('.', '-').replace('_', '-')} [data-program]").text_content() or ""
        (tmp_path / name).write_text(program.replace("8080", port))
    serving = subprocess.Popen([sys.executable, "browser_server.py"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/browser.html"
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while serving.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(address):
            break
        time.sleep(0.05)
    yield address
    serving.kill()
    serving.wait()


def test_the_page_that_talks_is_copied_and_talks(site: str, playwright: Playwright, tmp_path: Path) -> None:
    browser = launch(playwright, write_microphone(tmp_path / "microphone.wav", 2.0, QUESTION, 60.0))
    try:
        page = browser.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        for path in ("/browser_server.py", "/"):
            with urllib.request.urlopen(site.replace("/browser.html", path)) as response:
                assert b"<button" in response.read(), "the server's file, which holds the key, is not served"
        page.goto(f"file://{tmp_path}/browser.html")
        expect(page.locator("pre")).to_contain_text("and open 127.0.0.1:")
        page.goto(site)
        expect(page.locator("pre")).to_be_empty()
        page.click("button")
        expect(page.locator("pre")).to_contain_text(REPLY, timeout=PATIENCE_MS)
        page.wait_for_function(LOUD, timeout=PATIENCE_MS)
        assert complaints == []
    finally:
        browser.close()


def test_a_program_is_found_by_its_address_and_copied(open_window: OpenWindow, server: Server) -> None:
    page = open_window()
    page.goto(f"http://127.0.0.1:{server.port}/docs/connect#openai-chat-py")
    program = page.locator("#openai-chat-py [data-program]")
    expect(program).to_be_visible()
    page.locator("#openai-chat-py").get_by_role("button", name="Copy").last.click()
    expect(page.locator("#openai-chat-py").get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == program.text_content()
    page.locator(".side-open").get_by_role("link", name="Pipecat").click()
    expect(page.locator("#pipecat-bot-py [data-program]")).to_be_visible()


def test_programs_are_read_without_scripts(open_window: OpenWindow, server: Server) -> None:
    page = open_window(java_script_enabled=False, viewport={"width": 320, "height": 640})
    page.goto(f"http://127.0.0.1:{server.port}/docs/connect")
    page.locator("summary").filter(has_text="curl").click()
    expect(page.locator("#curl-sh [data-program]")).to_be_visible()
    assert page.get_by_role("button").count() == 0
