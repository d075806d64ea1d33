"""Each state of the page says one thing: the orb, its words and the buttons agree."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .accessibility import violations
from .conftest import OpenPage
from .page import VoicePage
from .server import running

ORB_COLOUR = "getComputedStyle(document.body).getPropertyValue('--orb-deep').trim()"


CONTRAST = """async (png) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
    const pen = canvas.getContext('2d');
    pen.drawImage(image, 0, 0);
    const { data } = pen.getImageData(0, 0, image.width, image.height);
    const linear = (value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    const found = [];
    for (let at = 0; at < data.length; at += 4) {
        const [red, green, blue] = [linear(data[at]), linear(data[at + 1]), linear(data[at + 2])];
        found.push(0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05);
    }
    found.sort((a, b) => a - b);
    const ground = found[found.length >> 1];
    return Math.max(found.at(-1) / ground, ground / found[0]);
}"""
"""Between the ground of a picture and what is drawn on it, as WCAG 2 defines it."""


def icon(voice: VoicePage) -> str:
    return str(voice.page.locator("#orb-icon").get_attribute("href")).removeprefix("#icon-")


def test_a_muted_page_looks_muted_and_says_how_to_unmute(open_page: OpenPage, screenshots: Path) -> None:
    voice = open_page()
    voice.talk()
    listening = voice.page.evaluate(ORB_COLOUR)
    expect(voice.page.locator("#welcome-title")).to_have_text("Say something.")
    voice.page.get_by_role("button", name="Mute").click()
    expect(voice.page.locator("#status")).to_have_text("Muted: tap or hold to speak")
    expect(voice.page.locator("#welcome")).to_contain_text("You are muted.")
    expect(voice.page.locator("#welcome")).to_contain_text("Press “Unmute”, hold the circle or the space bar")
    assert icon(voice) == "mic-off"
    assert voice.page.evaluate(ORB_COLOUR) != listening
    assert violations(voice.page) == []
    voice.page.wait_for_timeout(450)  # the orb's colour takes a third of a second to arrive
    voice.page.screenshot(path=screenshots / "muted.png")
    voice.orb.click()
    expect(voice.page.locator("#status")).to_have_text("Listening")
    assert (voice.state, icon(voice), voice.page.evaluate(ORB_COLOUR)) == ("listening", "ear", listening)
    expect(voice.page.locator("#welcome-title")).to_have_text("Say something.")
    voice.page.get_by_role("button", name="Mute").click()
    expect(voice.orb).to_have_accessible_name("Unmute the microphone")
    voice.page.locator("#controls").get_by_role("button", name="Unmute").click()
    expect(voice.page.locator("#status")).to_have_text("Listening")
    expect(voice.orb).to_have_accessible_name("End the conversation")


def test_push_to_talk_takes_the_place_of_muting(open_page: OpenPage) -> None:
    voice = open_page()
    voice.talk()
    mute = voice.page.locator("#mute")
    mute.click()
    expect(voice.page.locator("#status")).to_have_text("Muted: tap or hold to speak")
    voice.page.locator("#push-to-talk").click()
    expect(voice.page.locator("#status")).to_have_text("Hold the circle or the space bar")
    expect(mute).to_be_hidden()
    voice.page.keyboard.down("Space")
    expect(voice.page.locator("#status")).to_have_text("Hearing you: release to send")
    voice.page.keyboard.up("Space")
    voice.page.locator("#push-to-talk").click()
    expect(mute).to_have_text("Mute")


def test_a_full_server_says_so_tries_again_and_can_be_left(
    open_page: OpenPage, tmp_path: Path, screenshots: Path
) -> None:
    with running(tmp_path, MAX_SESSIONS="1") as small:
        address = f"http://127.0.0.1:{small.port}/"
        first, second = open_page(address), open_page(address, viewport={"width": 390, "height": 844})
        first.talk()
        second.orb.click()
        second.wait("queued")
        expect(second.page.locator("#welcome")).to_contain_text("All lines are busy.")
        expect(second.page.locator("#welcome")).to_contain_text("This page tries again by itself")
        expect(second.page.locator("#status")).to_contain_text("Number 1 in the queue: trying again in")
        assert violations(second.page) == []
        second.page.screenshot(path=screenshots / "queued.png")
        third = open_page(address, transport="webrtc")
        third.orb.click()
        third.wait("queued")
        expect(third.page.locator("#status")).to_contain_text("Number 2 in the queue")
        third.page.click("#end")
        third.wait("idle")
        second.page.get_by_role("button", name="Stop waiting").and_(second.page.locator("#end")).click()
        second.wait("idle")
        expect(second.page.locator("#welcome-title")).to_have_text("Say something.")
        expect(second.page.locator("#controls")).to_be_hidden()

        second.orb.click()
        second.wait("queued")
        first.page.click("#end")
        second.wait("your-turn")
        expect(second.page.locator("#welcome-title")).to_have_text("It is your turn.")
        second.page.screenshot(path=screenshots / "your-turn.png")
        second.orb.click()
        second.wait("listening")
        expect(second.page.locator("#welcome-title")).to_have_text("Say something.")


def test_a_conversation_whose_microphone_went_away_asks_for_typing(open_page: OpenPage) -> None:
    voice = open_page()
    voice.page.evaluate(
        """() => {
            const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
            navigator.mediaDevices.getUserMedia = async (wish) => (window.stream = await ask(wish));
        }"""
    )
    voice.talk()
    voice.page.evaluate("window.stream.getAudioTracks()[0].dispatchEvent(new Event('ended'))")
    card = voice.expect_card("microphone_lost")
    expect(voice.page.locator("#welcome-title")).to_be_hidden()
    card.get_by_role("button").click()
    voice.page.keyboard.press("Escape")
    expect(voice.page.locator("#welcome-title")).to_have_text("Type a message.")
    expect(voice.page.locator("#status")).to_have_text("Type a message, or tap to talk")
    voice.type("What is two plus two?")
    voice.wait("ai-speaking")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_themes_show_the_state_and_what_is_pressed(
    open_page: OpenPage, screenshots: Path, scheme: str
) -> None:
    voice = open_page(forced_colors="active", color_scheme=scheme)

    def contrast(place: str) -> float:
        picture = voice.page.locator(place).screenshot()
        return float(voice.page.evaluate(CONTRAST, base64.b64encode(picture).decode()))

    assert contrast(".orb-icon") > 7
    voice.talk()
    assert contrast(".orb-icon") > 7
    voice.page.get_by_role("button", name="Mute").click()
    expect(voice.page.locator("#status")).to_have_text("Muted: tap or hold to speak")
    assert contrast(".orb-icon") > 7
    background = "(button) => getComputedStyle(button).backgroundColor"
    pressed, plain = (voice.page.locator(place).evaluate(background) for place in ("#mute", "#push-to-talk"))
    assert pressed != plain
    assert contrast("#mute svg") > 4.5
    voice.page.screenshot(path=screenshots / f"contrast-theme-{scheme}.png")
    assert violations(voice.page) == []
    voice.page.click("#open-settings")
    assert contrast("#is-push-to-talk") > 4.5
    assert contrast("#is-spoken") > 4.5


def test_transcript_and_events_tell_the_time_of_the_visitors_own_clock(open_page: OpenPage) -> None:
    voice = open_page(timezone_id="Asia/Kathmandu", locale="en-GB")
    voice.set_switch("is-spoken", False)
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")
    now, offset = voice.page.evaluate("[new Date().toTimeString().slice(0, 2), new Date().getTimezoneOffset()]")
    assert offset == -345
    for place in (".turn time", ".event-time"):
        told = voice.page.locator(place).last.text_content() or ""
        assert (int(now) - int(told[:2])) % 24 <= 1, place
