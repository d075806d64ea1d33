"""How the page looks in every state, and whether everybody can use it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import expect

from tests.outages.faults import FaultProxy
from tests.thorough import usually

from .accessibility import violations
from .conftest import OpenPage
from .page import VoicePage

SpokenPage = Callable[..., VoicePage]

QUESTION = "What happens when I interrupt you?"
SIZES = {390: 844, 1280: 800}
LOOKS = usually(
    *((390, "light", "wide"), (1280, "dark", "narrow")),
    more=((390, "dark", "narrow"), (1280, "light", "wide")),
)
VARIANTS = [(width, scheme) for width, scheme, _ in LOOKS]


@pytest.mark.parametrize(("width", "scheme", "fonts"), LOOKS)
def test_a_screenshot_of_every_state(
    open_page: OpenPage, proxy: FaultProxy, screenshots: Path, width: int, scheme: str, fonts: str
) -> None:
    look = {"viewport": {"width": width, "height": SIZES[width]}, "color_scheme": scheme}
    voice = open_page(look={"fonts": fonts}, reduced_motion="no-preference", **look)

    def picture(state: str) -> None:
        voice.wait(*state.split("|"))
        voice.page.wait_for_timeout(450)  # the orb's colour takes a third of a second to arrive
        voice.page.screenshot(path=screenshots / f"{state}-{width}-{scheme}.png")
        assert voice.overflow <= 0

    picture("idle")
    voice.set_switch("is-push-to-talk", True)
    proxy.faults.is_silent = True
    voice.orb.click()
    picture("connecting")
    proxy.faults.is_silent = False
    picture("listening")
    voice.orb.focus()
    voice.page.keyboard.down("Space")
    picture("user-speaking")
    voice.page.keyboard.up("Space")
    voice.type("What can you do?")
    voice.wait("ai-speaking")
    voice.wait_spoken(30)
    picture("ai-speaking")
    voice.page.keyboard.press("Escape")
    voice.wait("listening")
    expect(voice.page.locator("#caption-assistant .unheard")).not_to_be_empty()
    voice.page.wait_for_timeout(450)
    voice.page.screenshot(path=screenshots / f"interrupted-{width}-{scheme}.png")
    expect(voice.page.locator(".card")).to_have_count(0)
    proxy.faults.is_silent = True
    voice.type("What time is it?")
    picture("processing")
    proxy.set_down(True)
    picture("reconnecting")
    voice.page.click("#end")
    proxy.faults.is_silent = False
    voice.orb.click()
    picture("error")


def test_the_screenshot_of_the_readme_shows_a_spoken_turn(spoken_page: SpokenPage, screenshots: Path) -> None:
    voice = spoken_page(3.0, QUESTION, color_scheme="light", fonts="narrow")
    voice.talk()
    voice.wait("ai-speaking")
    voice.wait_spoken(30)
    expect(voice.caption("user")).to_have_text(QUESTION)
    expect(voice.page.locator("#caption-assistant .upcoming")).not_to_be_empty()
    expect(voice.page.locator("#push-to-talk")).to_have_attribute("aria-pressed", "false")
    asked_for = os.environ.get("README_SCREENSHOT")
    voice.page.screenshot(path=Path(settings.BASE_DIR, asked_for) if asked_for else screenshots / "readme.png")


@pytest.mark.parametrize(("width", "scheme", "fonts"), LOOKS)
def test_everybody_can_use_it(
    open_page: OpenPage, proxy: FaultProxy, screenshots: Path, width: int, scheme: str, fonts: str
) -> None:
    voice = open_page(look={"fonts": fonts}, viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme)
    found = violations(voice.page)
    voice.page.click("#open-settings")
    voice.page.screenshot(path=screenshots / f"settings-{width}-{scheme}.png")
    found += violations(voice.page)
    voice.page.keyboard.press("Escape")
    voice.type("What can you do?")
    voice.wait("ai-speaking")
    found += violations(voice.page)
    voice.orb.click()
    voice.wait("listening")
    expect(voice.page.locator("#waterfall")).to_be_visible()
    found += violations(voice.page)
    if width < 960:
        voice.page.click("#open-transcript")
    voice.page.screenshot(path=screenshots / f"transcript-{width}-{scheme}.png")
    found += violations(voice.page)
    if width < 960:
        voice.page.click("#close-transcript")
    voice.page.click("#open-drawer")
    voice.page.locator(".event summary").first.click()
    voice.page.screenshot(path=screenshots / f"drawer-{width}-{scheme}.png")
    found += violations(voice.page)
    voice.page.click("#close-drawer")
    voice.page.click("#end")
    proxy.set_down(True)
    voice.orb.click()
    voice.expect_card("unreachable")
    found += violations(voice.page)
    assert found == []


def test_the_login_can_be_used_by_everybody(open_page: OpenPage, proxy: FaultProxy, screenshots: Path) -> None:
    voice = open_page(viewport={"width": 360, "height": 640})
    voice.page.goto(f"http://127.0.0.1:{proxy.port}/login")
    voice.page.screenshot(path=screenshots / "login-360-light.png")
    found = violations(voice.page)
    voice.page.fill("#id_username", "nobody")
    voice.page.fill("#id_password", "nothing")
    voice.page.keyboard.press("Enter")
    expect(voice.page.get_by_role("alert")).to_contain_text("do not go together")
    assert found + violations(voice.page) == []
    assert voice.overflow <= 0


def test_a_long_conversation_scrolls_in_its_transcript_and_not_the_page(open_page: OpenPage) -> None:
    voice = open_page()
    voice.set_switch("is-spoken", False)
    for count in range(1, 6):
        voice.type("How do I create an API key?")
        expect(voice.page.locator('.turn[data-role="assistant"][data-state="done"]')).to_have_count(count)
    heights = voice.page.evaluate(
        """[document.documentElement.scrollHeight - innerHeight,
            document.querySelector('#turns').scrollHeight > document.querySelector('#turns').clientHeight]"""
    )
    assert heights == [0, True]
    for name in ("orb", "message", "end", "copy-transcript"):
        box = voice.page.locator(f"#{name}").bounding_box()
        assert box is not None, name
        assert box["y"] + box["height"] <= 800, name


@pytest.mark.parametrize("wish", ["reduce", "no-preference"])
def test_nothing_moves_for_those_who_asked_for_stillness(open_page: OpenPage, wish: str) -> None:
    voice = open_page(reduced_motion=wish)
    running = voice.page.evaluate("document.getAnimations().length")
    picture = "document.querySelector('#orb-canvas').toDataURL()"
    first = voice.page.evaluate(picture)
    voice.page.evaluate(
        """new Promise((done) => {
            let frames = 0;
            const tick = () => (frames++ < 20 ? requestAnimationFrame(tick) : done());
            tick();
        })"""
    )
    is_still = (running, voice.page.evaluate(picture)) == (0, first)
    assert is_still == (wish == "reduce")


def test_screen_readers_hear_states_and_sentences(open_page: OpenPage) -> None:
    voice = open_page()
    voice.type("What is two plus two?")
    voice.wait("ai-speaking")
    voice.wait("listening")
    expect(voice.page.locator("#announcer")).to_contain_text("Assistant:")
    expect(voice.page.locator("#announcer")).not_to_contain_text("What is two plus two?")  # they have just typed it
    assert voice.page.locator("#status").get_attribute("role") == "status"


def test_screen_readers_hear_a_turn_that_goes_on_to_its_end(open_page: OpenPage) -> None:
    voice = open_page()
    voice.page.evaluate(
        """async () => {
            const { Conversation } = await import("/static/voice/conversation.js");
            const { Captions } = await import("/static/voice/views/captions.js");
            const conversation = new Conversation();
            new Captions(conversation);
            const tell = (type, fields) => conversation.receive({ type, item_id: "item_1", ...fields });
            const transcription = "conversation.item.input_audio_transcription";
            for (const transcript of ["Listen to this.", "Listen to this. Are you there?"]) {
                tell("input_audio_buffer.speech_started", {});
                tell(`${transcription}.delta`, { text: "Listen to this.", stash: " Are" });
                tell("input_audio_buffer.speech_stopped", {});
                tell(`${transcription}.completed`, { transcript });
            }
            window.mumble = () => {
                tell(`${transcription}.delta`, { item_id: "item_2", text: "", stash: "Siobhan R." });
                tell(`${transcription}.completed`, { item_id: "item_2", transcript: "" });
            };
        }"""
    )
    told = voice.page.locator("#announcer p")
    expect(told).to_have_text(["You: Listen to this.", "You: Are you there?"])
    voice.page.evaluate("window.mumble()")
    expect(voice.caption("user")).to_have_text("Listen to this. Are you there?")  # what came to nothing is not shown
