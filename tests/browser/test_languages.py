"""The page in other languages: its words, times and numbers, its direction, and whether it all has its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .accessibility import violations
from .conftest import OpenPage
from .test_fit import CUT_OFF

OVERFLOWING = "document.documentElement.scrollWidth > innerWidth"


@pytest.mark.parametrize(
    ("locale", "start", "muted", "time"),
    [
        ("de-DE", "Gespräch beginnen", "Stumm: zum Sprechen tippen oder halten", r"\d\d:\d\d"),
        ("es-ES", "Empezar a hablar", "Silenciado: toca o mantén pulsado para hablar", r"\d?\d:\d\d"),
        ("fr-FR", "Commencer à parler", "Micro coupé : touchez ou maintenez pour parler", r"\d\d:\d\d"),
        ("ja-JP", "会話を始める", "ミュート中：タップか長押しで話す", r"\d?\d:\d\d"),
        ("zh-CN", "开始对话", "已静音：点按或按住说话", r"\d\d:\d\d"),
    ],
)
def test_a_conversation_in_the_visitors_language(
    open_page: OpenPage, screenshots: Path, locale: str, start: str, muted: str, time: str
) -> None:
    voice = open_page(locale=locale, viewport={"width": 320, "height": 568}, first_visit=True)
    expect(voice.orb).to_have_accessible_name(start)
    assert not voice.page.evaluate(OVERFLOWING)
    voice.page.screenshot(path=screenshots / f"idle-{locale}.png")
    voice.talk()
    voice.page.click("#mute")
    expect(voice.page.locator("#status")).to_have_text(muted)
    assert not voice.page.evaluate(OVERFLOWING)
    assert voice.page.evaluate(CUT_OFF, ".dock") == []
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")
    voice.page.screenshot(path=screenshots / f"talking-{locale}.png")
    assert violations(voice.page) == []
    voice.page.click("#open-transcript")
    expect(voice.page.locator(".turn time").first).to_have_text(re.compile(f"^{time}$"))
    voice.page.click("#close-transcript")
    voice.page.click("#open-settings")
    assert voice.page.evaluate(CUT_OFF, "#settings") == []
    voice.page.screenshot(path=screenshots / f"settings-{locale}.png")


def test_the_language_is_chosen_in_settings_and_english_times_have_their_halves(open_page: OpenPage) -> None:
    voice = open_page()
    voice.type("What is two plus two?")
    expect(voice.page.locator(".turn time").first).to_contain_text("M")
    voice.page.click("#open-settings")
    voice.page.select_option("#page-language", "de")
    voice.page.wait_for_selector('html[lang="de"] body[data-loaded]')
    expect(voice.page.locator("#open-settings")).to_have_text("Einstellungen")
    voice.expect_card("reloaded").get_by_role("button").click()
    voice.wait("listening")


@pytest.mark.parametrize("width", [320, 1280])
def test_the_page_runs_from_right_to_left(open_page: OpenPage, screenshots: Path, width: int) -> None:
    voice = open_page(viewport={"width": width, "height": 800})
    voice.page.evaluate("document.documentElement.dir = 'rtl'")
    voice.page.evaluate("document.documentElement.lang = 'ar'")
    brand, settings = (voice.page.locator(place).bounding_box() for place in (".brand", "#open-settings"))
    assert brand is not None
    assert settings is not None
    assert brand["x"] > settings["x"]
    voice.set_switch("is-spoken", False)
    words = "كم الساعة الآن؟"
    voice.type(words)
    caption = voice.caption("user")
    expect(caption).to_have_text(words)
    assert caption.evaluate("(part) => [getComputedStyle(part).direction, getComputedStyle(part).fontStyle]") == [
        "rtl",
        "normal",
    ]
    reply = voice.caption("assistant")
    expect(reply).not_to_be_empty()
    voice.type("What is two plus two?")
    expect(reply).to_contain_text("4")
    assert reply.evaluate("(part) => getComputedStyle(part).direction") == "ltr"  # it is in English
    assert not voice.page.evaluate(OVERFLOWING)
    voice.page.screenshot(path=screenshots / f"right-to-left-{width}.png")
    assert violations(voice.page) == []
