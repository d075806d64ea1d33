"""Everything by keyboard, and push-to-talk."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from .conftest import OpenPage
from .page import VoicePage
from .speech import likeness


def test_tab_reaches_everything_in_order_and_focus_is_seen(open_page: OpenPage) -> None:
    voice = open_page()
    reached = []
    for _ in range(10):
        voice.page.keyboard.press("Tab")
        name, outline = voice.page.evaluate(
            "[document.activeElement.id || document.activeElement.className,"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        reached.append(name)
        assert outline != "none", name
    assert reached[:6] == ["skip", "brand", "open-transcript", "open-drawer", "open-about", "open-settings"]
    assert reached[6:] == ["sign-in", "orb", "try", "try"]


def test_a_conversation_starts_stops_and_is_interrupted_by_keyboard(open_page: OpenPage) -> None:
    voice = open_page()
    voice.orb.focus()
    voice.page.keyboard.press("Enter")
    voice.wait("listening")
    voice.type("What can you do?")
    voice.wait("ai-speaking")
    voice.page.keyboard.press("Escape")
    voice.wait("listening")
    voice.page.locator("#end").focus()
    voice.page.keyboard.press("Enter")
    voice.wait("idle")
    expect(voice.orb).to_be_focused()


def test_holding_space_is_talking(spoken_page: Callable[..., VoicePage]) -> None:
    voice = spoken_page(5.0, "What time is it?")
    voice.set_switch("is-push-to-talk", True)
    voice.talk()
    expect(voice.page.locator("#status")).to_have_text("Hold the circle or the space bar")
    voice.orb.focus()
    voice.page.keyboard.down("Space")
    voice.wait("user-speaking")
    expect(voice.caption("user")).to_contain_text(re.compile("time is it", re.IGNORECASE))
    voice.page.keyboard.up("Space")
    voice.wait("ai-speaking")
    assert likeness(voice.caption("user").inner_text(), "What time is it?") > 0.7
    expect(voice.caption("assistant")).to_contain_text("It is")
    assert voice.sent("input_audio_buffer.commit") == 1
    assert voice.sent("input_audio_buffer.speech_started") == 0


def test_without_holding_nothing_is_sent_and_space_in_the_message_is_a_space(open_page: OpenPage) -> None:
    voice = open_page()
    voice.set_switch("is-push-to-talk", True)
    voice.talk()
    voice.page.locator("#message").focus()
    voice.page.keyboard.type("two words")
    assert voice.page.input_value("#message") == "two words"
    assert voice.state == "listening"
    voice.type("What is two plus two?")
    voice.wait("ai-speaking")
    assert voice.sent("input_audio_buffer.append") == 0


def test_a_panel_takes_the_focus_and_gives_it_back(open_page: OpenPage) -> None:
    voice = open_page(viewport={"width": 390, "height": 844})
    voice.page.locator("#open-transcript").press("Enter")
    expect(voice.page.locator("#transcript")).to_be_focused()
    assert voice.page.evaluate("document.querySelector('.stage').inert")
    voice.page.keyboard.press("Escape")
    expect(voice.page.locator("#open-transcript")).to_be_focused()
    assert not voice.page.evaluate("document.querySelector('.stage').inert")


def test_a_message_has_lines_and_enter_sends_it(open_page: OpenPage) -> None:
    voice = open_page()
    message = voice.page.locator("#message")
    one_line = message.bounding_box()
    message.press_sequentially("Tell me")
    message.press("Shift+Enter")
    message.press_sequentially("a joke.")
    two_lines = message.bounding_box()
    assert one_line is not None
    assert two_lines is not None
    assert two_lines["height"] > one_line["height"]
    message.press("Enter")
    expect(voice.page.locator('.turn[data-role="user"]')).to_contain_text("Tell me\na joke.")
    assert message.input_value() == ""
    sent = message.bounding_box()
    assert sent is not None
    assert sent["height"] == one_line["height"]
