"""Two tabs of one browser: one of them talks at a time."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Error, expect

from tests.outages.faults import FaultProxy
from tests.thorough import usually

from .conftest import OpenPage
from .page import LIVE, VoicePage
from .server import Server

WATCH_MICROPHONE = """() => {
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (wish) => {
        window.stream = await ask(wish);
        return window.stream;
    };
}"""


def second_tab(first: VoicePage) -> VoicePage:
    """The page once more, in another tab of the same browser."""
    tab = VoicePage(first.page.context.new_page(), first.page.url, {})
    tab.page.evaluate(WATCH_MICROPHONE)
    return tab


def hears(tab: VoicePage) -> bool:
    """Whether this tab has its microphone open."""
    live: bool = tab.page.evaluate(
        "window.stream?.getTracks().some(({ readyState }) => readyState === 'live') ?? false"
    )
    return live


@pytest.fixture
def first(open_page: OpenPage) -> VoicePage:
    voice = open_page()
    voice.page.evaluate(WATCH_MICROPHONE)
    return voice


def test_the_second_tab_asks_which_one_shall_talk_and_the_choice_moves_the_voice(
    first: VoicePage, screenshots: Path
) -> None:
    first.talk()
    first.type("What can you do?")
    first.wait("ai-speaking")
    second = second_tab(first)
    second.orb.click()
    card = second.expect_card("other_tab")
    second.page.screenshot(path=screenshots / "other-tab.png")
    assert (second.state, hears(first), hears(second)) == ("idle", True, False)
    assert first.state == "ai-speaking"
    card.get_by_role("button", name="Leave it there").click()
    expect(second.page.locator(".card")).to_have_count(0)
    assert (first.state, second.state) == ("ai-speaking", "idle")

    second.orb.click()
    card.get_by_role("button", name="Talk here").click()
    second.wait("listening")
    first.wait("idle")
    moved = first.expect_card("moved")
    first.page.screenshot(path=screenshots / "moved.png")
    assert (hears(first), hears(second)) == (False, True)
    expect(first.page.locator(".turn .unheard")).not_to_be_empty()  # silent at once

    second.type("What is two plus two?")
    expect(second.caption("assistant")).to_contain_text("4")
    assert "4" not in first.turns()[-1][1]
    moved.get_by_role("button", name="Talk here").click()
    first.wait(*LIVE)
    second.wait("idle")
    assert (hears(first), hears(second)) == (True, False)


def test_what_was_typed_in_the_second_tab_is_sent_when_it_is_chosen(first: VoicePage) -> None:
    first.talk()
    second = second_tab(first)
    second.type("What is two plus two?")
    second.expect_card("other_tab").get_by_role("button", name="Talk here").click()
    expect(second.caption("assistant")).to_contain_text("4")
    assert second.page.input_value("#message") == ""
    assert not hears(second)  # a typed question asks for no microphone
    first.wait("idle")


@pytest.mark.parametrize("how", usually("crashed", "reloaded", more=("closed", "ended")))
def test_a_tab_that_is_gone_does_not_keep_the_voice(first: VoicePage, how: str) -> None:
    first.talk()
    second = second_tab(first)
    if how == "ended":
        first.page.click("#end")
        first.wait("idle")
    elif how == "closed":
        first.page.close()
    elif how == "reloaded":
        first.page.reload()
    else:
        with first.page.expect_event("crash"), suppress(Error):
            first.page.goto("chrome://crash")
    second.page.wait_for_function("async () => (await navigator.locks.query()).held.length === 0")
    second.talk()
    expect(second.page.locator(".card")).to_have_count(0)


def test_a_tab_that_does_not_listen_any_more_is_taken_over_all_the_same(first: VoicePage) -> None:
    first.talk()
    second = second_tab(first)
    second.page.evaluate("BroadcastChannel.prototype.postMessage = () => {}")
    second.orb.click()
    second.expect_card("other_tab").get_by_role("button", name="Talk here").click()
    second.wait("listening")
    first.wait("idle")
    first.expect_card("moved")


def test_an_outage_and_another_model_do_not_give_the_voice_away(first: VoicePage, proxy: FaultProxy) -> None:
    first.talk()
    second = second_tab(first)
    proxy.set_down(True)
    first.wait("reconnecting")
    proxy.set_down(False)
    second.orb.click()
    second.expect_card("other_tab")
    first.wait("listening")
    first.set_switch("is-push-to-talk", True)
    first.wait("listening")
    second.orb.click()
    second.expect_card("other_tab")


def test_signing_out_in_one_tab_clears_the_other(open_page: OpenPage, server: Server) -> None:
    first = open_page()
    first.set_switch("is-spoken", False)
    first.type("What is two plus two?")
    expect(first.caption("assistant")).to_contain_text("4")
    second = second_tab(first)
    second.page.evaluate("new BroadcastChannel('voiceapp.tabs').postMessage('signed-out')")
    first.wait("idle")
    expect(first.page.locator(".turn")).to_have_count(0)
