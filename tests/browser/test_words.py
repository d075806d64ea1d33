"""What the page says to visitors: whole sentences, true for this server, without the words of operators."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.realtime.chat_server import KEY, ChatServer

from .conftest import OpenPage
from .page import VoicePage
from .server import running

VARIABLE = re.compile(r"\b[A-Z]{2,}_[A-Z_]+\b")


def note_on_instructions(voice: VoicePage) -> str:
    voice.page.click("#open-settings")
    expect(voice.page.get_by_label("Instructions")).to_have_accessible_description(re.compile(r"\w"))
    note = voice.page.locator("#instructions-note").inner_text()
    voice.page.keyboard.press("Escape")
    return note


def test_settings_say_that_the_language_model_follows_instructions(open_page: OpenPage) -> None:
    voice = open_page()
    assert note_on_instructions(voice) == "The language model follows these in its replies."
    expect(voice.page.locator("#model-note")).to_have_text("Your voice and your words stay on this server.")


def test_visitors_read_no_setting_when_the_language_model_is_gone(open_page: OpenPage, tmp_path: Path) -> None:
    model = ChatServer()
    model.start()
    settings: dict[str, Any] = {
        "DEBUG": "0",
        "HTTPS": "0",
        "SECRET_KEY": "only-for-this-test-and-long-enough",
        "PUBLIC_PAGE": "guest",
    }
    llama: dict[str, Any] = {"CHAT_BASE_URL": model.base_url, "CHAT_API_KEY": KEY, "CHAT_MODEL": "llama"}
    with running(tmp_path, **settings, **llama, STATIC_ROOT=str(tmp_path / "static")) as server:
        voice = open_page(f"http://127.0.0.1:{server.port}/")
        assert note_on_instructions(voice) == "The language model follows these in its replies."
        voice.type("Are you there?")
        expect(voice.caption("assistant")).to_contain_text("I am here.")
        model.stop()
        voice.type("What is the meaning of life?")
        expect(voice.caption("assistant")).to_contain_text("I am sorry, I cannot answer right now.")
        card = voice.expect_card("reply_failed")
        expect(card).to_contain_text("The assistant could not finish its reply. Ask again in a moment.")
        assert VARIABLE.findall(voice.page.locator("body").inner_text()) == []
        later = open_page(f"http://127.0.0.1:{server.port}/")
        later.type("And now?")
        card = later.expect_card("model_unavailable")
        expect(card).to_contain_text("The chat server cannot be reached. The operator of this server has to see to it.")
        assert VARIABLE.findall(later.page.locator("body").inner_text()) == []
        assert "Check CHAT_BASE_URL" in server.log
    model.close()
