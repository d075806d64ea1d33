"""The page asks before the assistant uses a tool that needs approval: by keyboard, by touch, in every language."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from playwright.sync_api import Browser, StorageState, expect

from tests.realtime import mcp_server
from tests.realtime.chat_server import KEY, ChatServer

from .accessibility import violations
from .conftest import OpenPage
from .operators import make_operator, signed_in
from .page import VoicePage
from .server import Server, running

UNLOCK = 'Call the tool unlock with {"door": "front"}'
WORDS = {
    "en": ("Allow", "Deny"),
    "de": ("Erlauben", "Ablehnen"),
    "es": ("Permitir", "Denegar"),
    "fr": ("Autoriser", "Refuser"),
    "ja": ("許可する", "拒否する"),
    "zh-Hans": ("允许", "拒绝"),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With a language model, and a server of tools of which one has to be approved."""
    place = tmp_path_factory.mktemp("house")
    command = json.dumps([sys.executable, str(Path(mcp_server.__file__))])
    (place / "tools.toml").write_text(
        f'["my home"]\ncommand = {command}\nask = ["unlock"]\nalways = true\npublic = true\n'
    )
    with ChatServer() as chat:
        model: dict[str, Any] = {"CHAT_BASE_URL": chat.base_url, "CHAT_API_KEY": KEY, "CHAT_MODEL": "bard"}
        with running(place, **model, MCP_SERVERS=str(place / "tools.toml")) as server:
            make_operator(server)
            client = openai.OpenAI(api_key=server.new_key("Acme"), base_url=f"http://127.0.0.1:{server.port}/v1")
            tool: Any = {"type": "mcp", "server_label": "my home"}
            client.responses.create(model="gpt-4o", input="Hi", tools=[tool])  # waits until the tools are there
            yield server


@pytest.fixture(scope="module")
def member(quiet_browser: Browser, house: Server) -> StorageState:
    return signed_in(quiet_browser, house)


def asked(voice: VoicePage) -> VoicePage:
    voice.type(UNLOCK)
    voice.expect_card("approval")
    return voice


def test_a_call_is_allowed_by_keyboard_and_denied_by_touch(
    open_page: OpenPage, house: Server, member: StorageState, screenshots: Path
) -> None:
    address = f"http://127.0.0.1:{house.port}/"
    voice = asked(open_page(address, storage_state=member))
    card = voice.page.get_by_role("alert").locator(".card")
    expect(card).to_contain_text("Allow “unlock”?")
    expect(card).to_contain_text("this tool of “my home”")
    expect(card).to_contain_text('"door": "front"')
    expect(voice.caption("assistant")).to_have_text("I need your permission for that. Please look at the page.")
    assert violations(voice.page) == []
    voice.orb.focus()
    for name in ("Arguments", "Allow"):
        voice.page.keyboard.press("Tab")
        named = "[document.activeElement.ariaLabel ?? document.activeElement.textContent]"
        assert voice.page.evaluate(named) == [name]
    voice.page.keyboard.press("Enter")
    expect(voice.caption("assistant")).to_have_text("The tool said: The door is open.")
    expect(card).to_have_count(0)

    phone = asked(open_page(address, storage_state=member, viewport={"width": 320, "height": 568}, has_touch=True))
    phone.page.screenshot(path=screenshots / "approval-320.png")
    assert phone.overflow <= 0
    phone.expect_card("approval").get_by_role("button", name="Deny").tap()
    expect(phone.caption("assistant")).to_have_text("The tool said: The user does not allow this call.")


@pytest.mark.parametrize("language", WORDS)
def test_a_person_is_asked_in_the_language_of_the_page(
    open_page: OpenPage, house: Server, member: StorageState, language: str
) -> None:
    voice = asked(open_page(f"http://127.0.0.1:{house.port}/", storage_state=member, locale=language))
    assert tuple(voice.expect_card("approval").get_by_role("button").all_text_contents()) == WORDS[language]
    voice.page.click("#end")
    expect(voice.page.locator(".card")).to_have_count(0)


def test_guests_are_never_asked(open_page: OpenPage, house: Server) -> None:
    voice = open_page(f"http://127.0.0.1:{house.port}/")
    voice.type(UNLOCK)
    voice.expect_card("reply_failed")  # the model calls what it was not offered
    expect(voice.page.locator('[data-code="approval"]')).to_have_count(0)
