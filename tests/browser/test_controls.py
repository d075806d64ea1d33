"""What a person sets beside talking: mute, devices, theme, patience, and what developers see."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import expect

from .conftest import OpenPage
from .page import VoicePage

PAPER = "getComputedStyle(document.body).backgroundColor"
NO_MICROPHONE = """() => {
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    window.plugged = false;
    navigator.mediaDevices.getUserMedia = async (wish) => {
        if (!window.plugged) throw new DOMException("none", "NotFoundError");
        return ask(wish);
    };
}"""


def test_a_muted_person_is_heard_while_they_hold_the_circle_or_the_space_bar(open_page: OpenPage) -> None:
    voice = open_page()
    voice.talk()
    status, mute = voice.page.locator("#status"), voice.page.locator("#mute")
    mute.click()
    expect(status).to_have_text("Muted: tap or hold to speak")
    voice.orb.hover()
    voice.page.mouse.down()
    expect(status).to_have_text("Hearing you: release to mute")
    voice.page.wait_for_timeout(400)  # longer than a tap
    voice.page.mouse.up()
    expect(mute).to_have_text("Unmute")
    mute.focus()
    voice.page.keyboard.down("Space")  # it belongs to the button
    expect(status).to_have_text("Muted: tap or hold to speak")
    voice.page.keyboard.up("Space")
    expect(mute).to_have_text("Mute")
    mute.click()
    voice.page.evaluate("document.activeElement.blur()")
    voice.page.keyboard.down("Space")
    expect(status).to_have_text("Hearing you: release to mute")
    voice.page.wait_for_timeout(400)
    voice.page.keyboard.up("Space")
    expect(mute).to_have_text("Unmute")
    voice.orb.click()
    expect(mute).to_have_text("Mute")


def test_a_microphone_that_is_plugged_in_is_offered(open_page: OpenPage) -> None:
    voice = open_page()
    voice.page.evaluate(NO_MICROPHONE)
    voice.orb.click()
    voice.expect_card("microphone_missing")
    assert voice.state == "idle"  # nothing failed: typing works
    voice.page.evaluate("window.plugged = true; navigator.mediaDevices.dispatchEvent(new Event('devicechange'))")
    voice.expect_card("microphone_found").get_by_role("button", name="Try again").click()
    voice.wait("listening")
    expect(voice.page.locator(".card")).to_have_count(0)


def test_the_microphone_is_chosen_at_its_button(open_page: OpenPage) -> None:
    voice = open_page()
    voice.talk()
    menu = voice.page.get_by_label("Microphone", exact=True).and_(voice.page.locator("#microphone-menu"))
    expect(menu.locator("option")).not_to_have_count(1)
    name = menu.locator("option").nth(1).inner_text()
    menu.select_option(index=1)
    voice.page.click("#open-settings")
    expect(voice.page.locator("#microphone option:checked")).to_have_text(name)


def test_both_sides_have_a_level(open_page: OpenPage) -> None:
    voice = open_page()
    expect(voice.page.locator("#level-assistant")).to_be_hidden()
    voice.type("Tell me a joke.")
    expect(voice.page.locator("#level-assistant")).to_have_attribute("data-level", re.compile(r"^(0\.[2-9]|1)"))
    expect(voice.page.locator("#level-user")).to_have_attribute("data-level", "0")


def test_a_theme_is_kept_and_holds_on_every_page(open_page: OpenPage) -> None:
    voice = open_page(color_scheme="light", first_visit=True)
    light = voice.page.evaluate(PAPER)
    voice.page.click("#open-settings")
    voice.page.select_option("#theme", "dark")
    dark = voice.page.evaluate(PAPER)
    assert dark != light
    for path in ("privacy", "login", ""):
        voice.page.goto(voice.page.url.split("//")[0] + "//" + voice.page.url.split("/")[2] + "/" + path)
        assert voice.page.evaluate(PAPER) == dark, path
    voice.page.wait_for_selector("body[data-loaded]")
    voice.page.click("#open-settings")
    voice.page.select_option("#theme", "system")
    assert voice.page.evaluate(PAPER) == light


def test_patience_is_what_the_server_waits(open_page: OpenPage) -> None:
    voice = open_page()
    voice.talk()
    for patience, wait_ms in (("calm", 1500), ("quick", 350), ("normal", 800)):
        updated = voice.sent("session.updated")
        voice.page.click("#open-settings")
        voice.page.select_option("#patience", patience)
        rows = voice.page.locator('.event[data-type="session.updated"]')
        expect(rows).to_have_count(updated + 1)
        voice.page.keyboard.press("Escape")
        rows.last.locator("details").evaluate("(details) => { details.open = true; }")
        expect(rows.last.locator("pre")).to_contain_text(f'"silence_duration_ms": {wait_ms}')


def test_events_open_at_their_end_and_are_filtered_and_saved(open_page: OpenPage, tmp_path: Path) -> None:
    voice = open_page(viewport={"width": 1280, "height": 500})
    voice.set_switch("is-spoken", False)
    for _ in range(4):
        ask(voice, "What is two plus two?")
    voice.page.click("#open-drawer")
    last = voice.page.locator(".event").last
    expect(last).to_be_in_viewport()
    voice.page.fill("#filter-events", "session.")
    kinds = voice.page.locator(".event:visible .event-type")
    assert {str(kind).split(".")[0] for kind in kinds.all_inner_texts()} == {"session"}
    voice.page.fill("#filter-events", "")
    with voice.page.expect_download() as saving:
        voice.page.click("#save-events")
    saving.value.save_as(tmp_path / "events.jsonl")
    saved = [json.loads(row) for row in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [row["event"]["type"] for row in saved].count("response.done") == 4
    assert {"at", "direction", "event", "count"} <= saved[0].keys()


def ask(voice: VoicePage, words: str) -> None:
    done = voice.sent("response.done")
    voice.type(words)
    expect(voice.page.locator('.event[data-type="response.done"]')).to_have_count(done + 1)


def test_unheard_words_leave_the_stage_and_stay_in_the_transcript(open_page: OpenPage) -> None:
    voice = open_page()
    voice.type("What can you do?")
    voice.wait_spoken()
    voice.page.click("#interrupt")
    unheard = voice.page.locator("#caption-assistant .unheard")
    expect(unheard).not_to_be_empty()
    expect(unheard).to_have_count(0)
    expect(voice.page.locator(".turn .unheard")).not_to_be_empty()


def test_screen_readers_hear_no_typed_words_again_and_spoken_replies_if_wanted(open_page: OpenPage) -> None:
    voice = open_page()
    announced = voice.page.locator("#announcer p")
    ask(voice, "What is two plus two?")
    expect(announced).to_have_text(["Assistant: 2 plus 2 is 4."])
    voice.set_switch("is-announced", False)
    ask(voice, "What is two plus three?")
    voice.set_switch("is-spoken", False)
    ask(voice, "What is two plus five?")
    expect(announced).to_have_text(["Assistant: 2 plus 2 is 4.", "Assistant: 2 plus 5 is 7."])
