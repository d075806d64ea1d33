"""Outages in the middle of a conversation: what the page says, and how it goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.engines.speech import word_errors, words
from tests.outages.faults import FaultProxy

from .calls import recording
from .conftest import QUESTION, OpenPage
from .page import VoicePage
from .server import running
from .speech import recognised, trimmed

SpokenPage = Callable[..., VoicePage]
RESUMED = '.event[data-type="session.resumed"]'


def test_a_question_asked_into_the_cut_is_answered_afterwards(open_page: OpenPage, proxy: FaultProxy) -> None:
    voice = open_page()
    voice.talk()
    proxy.faults.is_silent = True
    voice.type("What is two plus two?")
    voice.wait("processing")
    proxy.cut()
    proxy.faults.is_silent = False
    voice.wait("ai-speaking")
    expect(voice.caption("assistant")).to_contain_text("4")
    assert [role for role, _ in voice.turns()] == ["user", "assistant"]


def test_a_reply_cut_in_the_middle_goes_on_where_it_was_heard(
    open_page: OpenPage, proxy: FaultProxy, tmp_path: Path, whole_reply: tuple[str, str]
) -> None:
    begin, end = whole_reply
    voice = open_page()
    voice.set_switch("is-recording", True)
    voice.type(QUESTION)
    voice.wait("ai-speaking")
    voice.wait_spoken(len(begin) // 2)
    proxy.cut()
    expect(voice.page.locator(RESUMED)).to_have_count(1)
    voice.wait("ai-speaking")
    voice.wait("listening")
    assert voice.turns() == [("user", QUESTION), ("assistant", f"{begin} {end}")]
    expect(voice.page.locator(".turn .unheard")).to_have_count(0)
    assert [voice.sent(f"session.{event}") for event in ("created", "resumed")] == [1, 1]
    _, loudspeaker = recording(voice, tmp_path)
    voice.page.click("#end")
    assert word_errors(f"{begin} {end}", recognised(trimmed(loudspeaker))) / len(words(f"{begin} {end}")) < 0.35


def test_a_long_outage_is_waited_out_and_ends_when_the_network_is_back(
    open_page: OpenPage, proxy: FaultProxy, screenshots: Path
) -> None:
    voice = open_page()
    voice.page.clock.install()
    voice.talk()
    proxy.set_down(True)
    voice.wait("reconnecting")
    refused = 0
    for _ in range(3):
        voice.page.clock.run_for(20_000)
        expect(voice.page.locator("#status")).to_have_text(re.compile(r"Connection lost: trying again( in \d+ s)?"))
        assert proxy.refused > refused
        refused = proxy.refused
    card = voice.expect_card("connection_lost")
    expect(card).to_contain_text("keeps trying")
    expect(voice.page.locator("#end")).to_have_text("Stop trying")
    voice.page.screenshot(path=screenshots / "connection-lost.png")
    proxy.set_down(False)
    voice.page.clock.pause_at(voice.page.evaluate("Date.now()") + 100)  # no timer brings it back
    voice.page.evaluate("window.dispatchEvent(new Event('online'))")
    voice.wait("listening")
    expect(card).to_have_count(0)


def test_an_outage_can_be_called_off_and_what_is_typed_in_one_is_answered_after_it(
    open_page: OpenPage, proxy: FaultProxy
) -> None:
    voice = open_page()
    voice.type("What is two plus three?")
    voice.wait("ai-speaking")
    voice.wait("listening")
    before = voice.turns()
    proxy.set_down(True)
    voice.wait("reconnecting")
    voice.page.get_by_role("button", name="Stop trying").click()
    voice.wait("idle")
    proxy.set_down(False)
    voice.orb.click()
    voice.wait("listening")
    assert voice.turns() == before

    proxy.set_down(True)
    voice.wait("reconnecting")
    voice.type("What is two plus two?")
    assert voice.turns() == [*before, ("user", "What is two plus two?")]
    proxy.set_down(False)
    voice.orb.click()
    expect(voice.caption("assistant")).to_contain_text("4")
    assert [role for role, _ in voice.turns()] == ["user", "assistant"] * 2


def test_what_is_said_in_an_outage_is_told_to_be_unheard(
    spoken_page: SpokenPage, proxy: FaultProxy, screenshots: Path
) -> None:
    voice = spoken_page(6.0, "What time is it?")
    voice.talk()
    proxy.set_down(True)
    voice.wait("reconnecting")
    card = voice.expect_card("not_heard")
    expect(card).to_contain_text("say it again")
    voice.page.screenshot(path=screenshots / "not-heard.png")
    proxy.set_down(False)
    voice.wait("listening")
    [(role, note)] = voice.turns()
    assert (role, "was not heard" in note) == ("note", True)


def test_a_restarted_server_is_found_again_in_the_middle_of_a_reply(
    open_page: OpenPage, tmp_path: Path, whole_reply: tuple[str, str]
) -> None:
    begin, end = whole_reply
    with running(tmp_path) as server:
        voice = open_page(f"http://127.0.0.1:{server.port}/")
        voice.type(QUESTION)
        voice.wait("ai-speaking")
        voice.wait_spoken(len(begin) + 3)
        server.kill()
        voice.wait("reconnecting")
        server.start(ready=False)
        expect(voice.page.locator(".turn")).to_have_count(3, timeout=90_000)
        voice.wait("listening")
        expect(voice.page.locator(".card")).to_have_count(0)
        assert voice.turns() == [("user", QUESTION), ("assistant", begin), ("assistant", end)]
