"""What the chosen voice sounds like, played in Settings."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from .accessibility import violations
from .conftest import OpenPage


def test_a_sample_is_heard_stopped_and_heard_to_its_end(open_page: OpenPage) -> None:
    voice = open_page()
    voice.page.click("#open-settings")
    button = voice.page.locator("#voice-sample")
    expect(button).to_have_text("Play a sample")
    button.click()
    expect(button).to_have_text("Stop")
    sound = voice.page.locator("#voice-sample-sound")
    expect(sound).to_have_js_property("paused", False)
    button.click()
    expect(button).to_have_text("Play a sample")
    expect(sound).to_have_js_property("paused", True)

    button.click()
    expect(button).to_have_text("Play a sample", timeout=15_000)
    expect(sound).to_have_js_property("ended", True)


def test_a_sample_that_does_not_come_is_told(open_page: OpenPage, screenshots: Path) -> None:
    voice = open_page(viewport={"width": 390, "height": 844})
    voice.page.route("**/voice/samples/*", lambda route: route.fulfill(status=503, json={"code": "x", "message": "x"}))
    voice.page.click("#open-settings")
    voice.page.click("#voice-sample")
    expect(voice.page.locator("#voice-sample-note")).to_have_text("The sample cannot be played now.")
    expect(voice.page.locator("#voice-sample")).to_have_text("Play a sample")
    voice.page.screenshot(path=screenshots / "settings-sample-390.png")
    assert voice.overflow <= 0
    assert violations(voice.page) == []
