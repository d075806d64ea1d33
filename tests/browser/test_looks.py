"""How the page looks in every state, and whether everybody can use it."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import expect

from .conftest import OpenPage
from .page import VoicePage
from .proxy import Proxy
from .server import Server

SpokenPage = Callable[..., VoicePage]

QUESTION = "What happens when I interrupt you?"
SIZES = {390: 844, 1280: 800}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@functools.cache
def axe_source() -> str:
    """The accessibility rules, installed by the lock file beside this test into the git-ignored var/."""
    place = Path(settings.BASE_DIR, "var", "browser-tests")
    script = place / "node_modules" / "axe-core" / "axe.min.js"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run beside each other, and one installs for all
        if not script.exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copy(Path(__file__).with_name(name), place / name)
            npm = shutil.which("npm")
            assert npm is not None, "The accessibility test needs npm (https://nodejs.org) on the path."
            command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            subprocess.run(command, cwd=place, check=True, timeout=180)
        return script.read_text()


def violations(voice: VoicePage) -> list[str]:
    """What axe-core objects to, one line per rule and element."""
    voice.page.evaluate(axe_source())
    voice.page.evaluate(
        """Promise.all(document.getAnimations()
            .filter((animation) => animation.effect.getTiming().iterations !== Infinity)
            .map((animation) => animation.finished))"""
    )
    found: list[dict[str, Any]] = voice.page.evaluate(
        """async (rules) => {
            const asked = { runOnly: { type: 'tag', values: rules }, resultTypes: ['violations'] };
            return (await axe.run(document, asked)).violations;
        }""",
        RULES,
    )
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found
        for node in violation["nodes"]
    ]


def overflow(voice: VoicePage) -> int:
    """By how many pixels the page is wider than the window."""
    return int(voice.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
def test_a_screenshot_of_every_state(
    open_page: OpenPage, proxy: Proxy, screenshots: Path, width: int, scheme: str
) -> None:
    voice = open_page(viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme)

    def picture(state: str) -> None:
        voice.wait(*state.split("|"))
        voice.page.wait_for_timeout(450)  # the orb's colour takes a third of a second to arrive
        voice.page.screenshot(path=screenshots / f"{state}-{width}-{scheme}.png")
        assert overflow(voice) <= 0

    picture("idle")
    voice.set_switch("is-push-to-talk", True)
    proxy.hold()
    voice.orb.click()
    picture("connecting")
    proxy.release()
    picture("listening")
    voice.orb.focus()
    voice.page.keyboard.down("Space")
    picture("user-speaking")
    voice.page.keyboard.up("Space")
    voice.type("How do I create an API key?")
    voice.wait("ai-speaking")
    voice.wait_spoken(30)
    picture("ai-speaking")
    voice.page.keyboard.press("Escape")
    voice.wait("listening")
    expect(voice.page.locator("#caption-assistant .unheard")).not_to_be_empty()
    voice.page.wait_for_timeout(450)
    voice.page.screenshot(path=screenshots / f"interrupted-{width}-{scheme}.png")
    expect(voice.page.locator(".card")).to_have_count(0)
    proxy.hold()
    voice.type("What time is it?")
    picture("processing")
    proxy.set_down(True)
    proxy.cut()
    picture("reconnecting")
    voice.page.click("#end")
    proxy.release()
    voice.orb.click()
    picture("error")


def test_the_screenshot_of_the_readme_shows_a_spoken_turn(spoken_page: SpokenPage, screenshots: Path) -> None:
    voice = spoken_page(3.0, QUESTION, color_scheme="light")
    voice.talk()
    voice.wait("ai-speaking")
    voice.wait_spoken(60)
    expect(voice.caption("user")).to_have_text(QUESTION)
    expect(voice.page.locator("#caption-assistant .upcoming")).not_to_be_empty()
    expect(voice.page.locator("#push-to-talk")).to_have_attribute("aria-pressed", "false")
    asked_for = os.environ.get("README_SCREENSHOT")
    voice.page.screenshot(path=Path(settings.BASE_DIR, asked_for) if asked_for else screenshots / "readme.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
def test_everybody_can_use_it(open_page: OpenPage, proxy: Proxy, screenshots: Path, width: int, scheme: str) -> None:
    voice = open_page(viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme)
    found = violations(voice)
    voice.page.click("#open-settings")
    voice.page.screenshot(path=screenshots / f"settings-{width}-{scheme}.png")
    found += violations(voice)
    voice.page.keyboard.press("Escape")
    voice.type("What can you do?")
    voice.wait("ai-speaking")
    found += violations(voice)
    voice.orb.click()
    voice.wait("listening")
    expect(voice.page.locator("#waterfall")).to_be_visible()
    found += violations(voice)
    if width < 960:
        voice.page.click("#open-transcript")
    voice.page.screenshot(path=screenshots / f"transcript-{width}-{scheme}.png")
    found += violations(voice)
    if width < 960:
        voice.page.click("#close-transcript")
    voice.page.click("#open-drawer")
    voice.page.locator(".event summary").first.click()
    voice.page.screenshot(path=screenshots / f"drawer-{width}-{scheme}.png")
    found += violations(voice)
    voice.page.click("#close-drawer")
    voice.page.click("#end")
    proxy.set_down(True)
    voice.orb.click()
    voice.expect_card("unreachable")
    found += violations(voice)
    assert found == []


def test_the_login_can_be_used_by_everybody(open_page: OpenPage, proxy: Proxy, screenshots: Path) -> None:
    voice = open_page(viewport={"width": 360, "height": 640})
    voice.page.goto(f"http://127.0.0.1:{proxy.port}/login")
    voice.page.screenshot(path=screenshots / "login-360-light.png")
    found = violations(voice)
    voice.page.fill("#id_username", "nobody")
    voice.page.fill("#id_password", "nothing")
    voice.page.keyboard.press("Enter")
    expect(voice.page.get_by_role("alert")).to_contain_text("do not go together")
    assert found + violations(voice) == []
    assert overflow(voice) <= 0


@pytest.mark.parametrize(("width", "height"), [(360, 640), (640, 360), (768, 1024), (1920, 1080)])
def test_it_fits_every_screen(open_page: OpenPage, screenshots: Path, width: int, height: int) -> None:
    voice = open_page(viewport={"width": width, "height": height})
    voice.type("How do I create an API key?")
    voice.wait("ai-speaking")
    voice.page.screenshot(path=screenshots / f"fits-{width}x{height}.png")
    assert overflow(voice) <= 0
    for name in ("orb", "mute", "end", "message", "status"):
        box = voice.page.locator(f"#{name}").bounding_box()
        assert box is not None, name
        assert box["x"] >= 0, name
        assert box["y"] >= 0, name
        assert box["x"] + box["width"] <= width, name
        assert box["y"] + box["height"] <= height, name


@pytest.fixture(scope="session")
def person(server: Server) -> tuple[str, str]:
    """Name and password of somebody who may sign in."""
    name, password = "paula", "a long enough secret"
    command = ("createsuperuser", "--noinput", "--username", name, "--email", "paula@example.org")
    server.manage(*command, DJANGO_SUPERUSER_PASSWORD=password)
    return name, password


@pytest.mark.parametrize("width", [320, 360, 390, 768])
def test_it_fits_for_people_who_signed_in_too(
    open_page: OpenPage, proxy: Proxy, person: tuple[str, str], screenshots: Path, width: int
) -> None:
    voice = open_page(viewport={"width": width, "height": 800})
    voice.page.goto(f"http://127.0.0.1:{proxy.port}/login")
    voice.page.fill("#id_username", person[0])
    voice.page.fill("#id_password", person[1])
    voice.page.keyboard.press("Enter")
    leave = voice.page.get_by_role("button", name="Sign out")
    expect(leave).to_be_visible()
    voice.page.screenshot(path=screenshots / f"signed-in-{width}.png")
    box = leave.bounding_box()
    assert box is not None
    assert (overflow(voice), box["x"] + box["width"] <= width, box["height"]) == (0, True, 44)
    assert violations(voice) == []
    leave.click()
    expect(leave).to_have_count(0)


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


def test_what_is_touched_is_large_enough(open_page: OpenPage) -> None:
    voice = open_page(viewport={"width": 390, "height": 844})
    voice.talk()
    small = voice.page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea, a.brand')]
            .filter((element) => element.checkVisibility() && element.type !== 'checkbox')
            .map((element) => [element.id || element.className, element.getBoundingClientRect()])
            .filter(([, box]) => box.width < 44 || box.height < 44)
            .map(([name, box]) => `${name} ${box.width} x ${box.height}`)"""
    )
    assert small == []


def test_nothing_moves_for_those_who_asked_for_stillness(open_page: OpenPage) -> None:
    voice = open_page(reduced_motion="reduce")
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
    assert (running, voice.page.evaluate(picture)) == (0, first)


def test_screen_readers_hear_states_and_sentences(open_page: OpenPage) -> None:
    voice = open_page()
    voice.type("What is two plus two?")
    voice.wait("ai-speaking")
    voice.wait("listening")
    expect(voice.page.locator("#announcer")).to_contain_text("You: What is two plus two?")
    expect(voice.page.locator("#announcer")).to_contain_text("Assistant:")
    assert voice.page.locator("#status").get_attribute("role") == "status"
