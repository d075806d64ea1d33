"""Timers are seen on the page, and speak up after a lost connection and a reload."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.outages.faults import FaultProxy

from .conftest import OpenPage
from .page import VoicePage
from .test_reload import reload

SET = "Set a timer for one hour."
RUNG = "Your 1 hour timer is up."


def with_timer(open_page: OpenPage) -> VoicePage:
    voice = open_page()
    voice.type(SET)
    expect(voice.page.locator("#reminders")).to_contain_text("1 hour timer")
    voice.wait("listening")
    return voice


def test_a_timer_that_is_up_in_an_outage_is_heard_after_it(open_page: OpenPage, proxy: FaultProxy) -> None:
    voice = with_timer(open_page)
    proxy.set_down(True)
    voice.wait("reconnecting")
    voice.page.clock.install(time=voice.page.evaluate("Date.now()") / 1000 + 3600)  # seconds
    proxy.set_down(False)
    voice.orb.click()
    expect(voice.caption("assistant")).to_have_text(RUNG)
    expect(voice.page.locator("#reminders")).to_be_hidden()
    voice.wait("listening")
    assert [text for _, text in voice.turns()].count(RUNG) == 1


def test_a_timer_is_kept_over_a_reload(open_page: OpenPage, screenshots: Path) -> None:
    voice = with_timer(open_page)
    voice.page.screenshot(path=screenshots / "timer.png")
    reload(voice)
    expect(voice.page.locator("#reminders")).to_contain_text("1 hour timer")
    voice.expect_card("reloaded").get_by_role("button").click()
    voice.wait("listening")
    voice.type("How much time is left?")
    expect(voice.caption("assistant")).to_contain_text("minutes")
    voice.type("Cancel the timer.")
    expect(voice.page.locator("#reminders")).to_be_hidden()
