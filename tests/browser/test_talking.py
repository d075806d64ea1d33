"""A person talks to the page and hears it answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from .accessibility import violations
from .conftest import OpenPage
from .page import VoicePage
from .server import running

SpokenPage = Callable[..., VoicePage]


def test_a_typed_question_is_answered_aloud_without_a_microphone(open_page: OpenPage) -> None:
    voice = open_page()
    voice.page.click(".try >> nth=1")
    voice.wait("ai-speaking")
    expect(voice.caption("assistant")).not_to_be_empty()
    assert voice.turns()[0] == ("user", "Tell me a joke.")
    assert voice.sent("input_audio_buffer.append") == 0
    voice.wait("listening")
    expect(voice.page.locator("#status")).to_have_text("Type a message, or tap to talk")


def test_the_language_of_settings_is_heard_and_kept(spoken_page: SpokenPage, tmp_path: Path, screenshots: Path) -> None:
    with running(tmp_path, SPEECH_LANGUAGES="de,es") as server:
        german = (5.0, "Ich möchte morgen früh nach Hamburg fahren.")
        address = f"http://127.0.0.1:{server.port}/"
        voice = spoken_page(*german, voice="de", address=address, viewport={"width": 320, "height": 700})
        voice.page.click("#open-settings")
        language = voice.page.get_by_label("You speak", exact=True)
        expect(language.locator("option")).to_have_text(["Automatic", "English", "German", "Spanish"])
        language.select_option("German")
        voice.page.screenshot(path=screenshots / "settings-language-320.png")
        assert voice.overflow <= 0
        assert violations(voice.page) == []
        voice.page.reload()
        voice.page.click("#open-settings")
        expect(language).to_have_value("de")
        voice.page.keyboard.press("Escape")
        voice.talk()
        expect(voice.caption("user")).to_contain_text("Hamburg")
        expect(voice.caption("assistant")).to_contain_text("Ich kann nur auf Englisch antworten.")


def test_the_circle_turns_the_microphone_on_in_a_conversation_that_was_typed(
    open_page: OpenPage, screenshots: Path
) -> None:
    voice = open_page(viewport={"width": 390, "height": 844})
    voice.set_switch("is-spoken", False)
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")
    assert voice.sent("response.audio.delta") == 0
    expect(voice.page.locator("#status")).to_have_text("Type a message, or tap to talk")
    expect(voice.orb).to_have_accessible_name("Turn on the microphone")
    expect(voice.page.locator("#end")).to_be_visible()
    voice.page.screenshot(path=screenshots / "typing-390.png")
    voice.orb.click()
    expect(voice.page.locator("#mute")).to_have_text("Mute")
    expect(voice.page.locator("#status")).to_have_text("Listening")
    assert voice.sent("session.created") == 1
    expect(voice.orb).to_have_accessible_name("End the conversation")
    voice.orb.click()
    voice.wait("idle")


def test_it_works_from_collected_files_outside_development(spoken_page: SpokenPage, tmp_path: Path) -> None:
    with running(
        tmp_path,
        DEBUG="0",
        HTTPS="0",
        SECRET_KEY="only-for-this-test-and-long-enough-to-be-one",
        PUBLIC_PAGE="guest",
        STATIC_ROOT=str(tmp_path / "static"),
    ) as installation:
        voice = spoken_page(5.0, "What time is it?", address=f"http://127.0.0.1:{installation.port}/")
        loaded = voice.page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
        modules = [address for address in loaded if address.endswith(".js")]
        assert len(modules) > 15
        assert all(re.search(r"\.[0-9a-f]{12}\.js$", address) for address in modules)
        voice.talk()
        voice.wait("ai-speaking")
        expect(voice.caption("assistant")).to_contain_text("It is")


def test_the_button_interrupts_and_the_words_not_heard_are_struck(open_page: OpenPage) -> None:
    voice = open_page()
    voice.type("What can you do?")
    voice.wait("ai-speaking")
    voice.wait_spoken(20)
    voice.orb.click()
    voice.wait("listening")
    expect(voice.page.locator("#caption-assistant .unheard")).not_to_be_empty()
    assert voice.sent("response.cancel") + voice.sent("response.done") >= 1


def test_the_transcript_can_be_saved_heard_again_and_begun_anew(open_page: OpenPage) -> None:
    voice = open_page()
    voice.type("What is two plus two?")
    voice.wait("ai-speaking")
    voice.wait("listening")
    with voice.page.expect_download() as text:
        voice.page.click("#export-text")
    assert "You: What is two plus two?" in text.value.path().read_text()
    with voice.page.expect_download() as saved:
        voice.page.click("#export-json")
    items = json.loads(saved.value.path().read_text())["items"]
    assert [item["role"] for item in items] == ["user", "assistant"]
    assert "first_audio_ms" in items[1]["metrics"]
    replay = voice.page.locator(".turn-replay")
    replay.click()
    expect(replay).to_be_disabled()
    expect(replay).to_be_enabled()
    voice.page.click("#new-conversation")
    voice.wait("idle")
    assert voice.turns() == []
    expect(voice.page.locator("#welcome")).to_be_visible()


def test_a_chosen_voice_and_instructions_reach_the_server(open_page: OpenPage) -> None:
    voice = open_page()
    voice.type("What is two plus two?")
    voice.wait("ai-speaking")
    voice.page.click("#open-settings")
    voice.page.select_option("#voice", "en-gb-x-rp")
    voice.page.fill("#instructions", "Answer in one sentence.")
    voice.page.keyboard.press("Tab")
    voice.page.keyboard.press("Escape")
    voice.page.click("#open-drawer")
    updated = voice.page.locator('.event[data-type="session.updated"]').last
    expect(voice.page.locator('.event[data-type="session.updated"]')).to_have_count(3)
    updated.locator("summary").click()
    expect(updated.locator("pre")).to_contain_text('"voice": "en-gb-x-rp"')
    expect(updated.locator("pre")).to_contain_text("Answer in one sentence.")
    voice.page.reload()
    voice.page.wait_for_selector("body[data-loaded]")
    assert voice.page.input_value("#voice") == "en-gb-x-rp"
    assert voice.page.input_value("#instructions") == "Answer in one sentence."


def test_a_start_that_is_stopped_and_made_again_at_once_is_one_conversation(open_page: OpenPage) -> None:
    voice = open_page()
    voice.page.evaluate("for (let taps = 0; taps < 5; taps += 1) { document.querySelector('#orb').click(); }")
    voice.wait("listening")
    expect(voice.page.locator(".card")).to_have_count(0)
    assert voice.sent("session.created") == 1
    voice.page.evaluate("for (let taps = 0; taps < 2; taps += 1) { document.querySelector('#end').click(); }")
    voice.wait("idle")
    held = voice.page.evaluate("async () => (await navigator.locks.query()).held.length")
    assert held == 0
