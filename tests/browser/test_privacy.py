"""What visitors find about privacy and help, before they talk and while they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.thorough import usually

from .accessibility import violations
from .conftest import OpenPage

KEPT = "It keeps what is said as text for 30 days, and its operators can read it."
LINKS = {"Privacy": "Privacy", "Help": "Talking on the page", "For developers": "Connect your program"}
"""By what a link says, the title of the page it leads to."""


@pytest.mark.parametrize(
    ("fonts", "width", "height"),
    usually(
        *(("wide", 360, 640), ("narrow", 1440, 900)),
        more=(("narrow", 360, 640), ("wide", 390, 844), ("wide", 768, 1024), ("wide", 1440, 900)),
    ),
)
def test_visitors_read_what_is_kept_before_they_talk(
    open_page: OpenPage, screenshots: Path, width: int, height: int, fonts: str
) -> None:
    voice = open_page(look={"fonts": fonts}, viewport={"width": width, "height": height}, first_visit=True)
    about = voice.page.locator("#about")
    expect(about).to_contain_text(KEPT)
    expect(about).to_be_in_viewport(ratio=1)
    expect(voice.page.locator(".try").last).to_be_in_viewport(ratio=1)
    voice.page.screenshot(path=screenshots / f"about-{width}-{fonts}.png")
    for developer_only in ("#open-drawer", "#link", "#waterfall"):
        expect(voice.page.locator(developer_only)).to_be_hidden()
    expect(voice.page.locator("#transcript")).to_be_hidden()
    voice.page.click("#open-transcript")
    for without_words in ("copy-transcript", "export-text", "export-json", "new-conversation"):
        expect(voice.page.locator(f"#{without_words}")).to_be_disabled()
    voice.page.click("#close-transcript")
    assert voice.overflow <= 0
    assert violations(voice.page) == []


@pytest.mark.parametrize(("width", "height"), [(320, 568), (1280, 800)])
def test_a_button_leads_there_in_the_middle_of_a_conversation(
    open_page: OpenPage, screenshots: Path, width: int, height: int
) -> None:
    voice = open_page(viewport={"width": width, "height": height})
    voice.talk()
    expect(voice.page.locator("#about")).to_be_hidden()
    voice.page.click("#open-about")
    about = voice.page.locator("#about-page .about")
    expect(about).to_contain_text(KEPT)
    expect(about).to_be_in_viewport(ratio=1)
    voice.page.screenshot(path=screenshots / f"conversation-about-{width}.png")
    with voice.page.context.expect_page() as opened:
        about.get_by_role("link", name="Privacy").click()
    expect(opened.value.get_by_role("heading", level=1)).to_have_text("Privacy")
    voice.page.keyboard.press("Escape")
    expect(about).to_be_hidden()
    assert voice.state == "listening"  # the conversation went on


def test_every_link_leads_to_a_page_that_everybody_can_read(open_page: OpenPage, screenshots: Path) -> None:
    voice = open_page(viewport={"width": 390, "height": 844})
    first = voice.page
    for link, title in LINKS.items():
        with first.context.expect_page() as opened:
            first.locator("#about").get_by_role("link", name=link).click()
        voice.page = opened.value
        expect(voice.page.get_by_role("heading", level=1)).to_have_text(title)
        voice.page.screenshot(path=screenshots / f"about-{title.replace(' ', '-').lower()}-390.png")
        assert voice.overflow <= 0
        assert violations(voice.page) == []
