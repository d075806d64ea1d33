"""A page that is loaded again keeps the words of its conversation, for those who may see them."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from .conftest import QUESTION, OpenPage
from .operators import NAME, PASSWORD
from .page import VoicePage


def reload(voice: VoicePage) -> None:
    voice.page.reload()
    voice.page.wait_for_selector("body[data-loaded]")


def test_a_reload_in_the_middle_of_a_reply_loses_no_word_and_it_goes_on(
    open_page: OpenPage, screenshots: Path, whole_reply: tuple[str, str]
) -> None:
    begin, end = whole_reply
    voice = open_page()
    voice.type(QUESTION)
    voice.wait("ai-speaking")
    voice.wait_spoken(len(begin) + 3)
    reload(voice)
    [asked, (role, heard)] = voice.turns()
    assert (asked, role) == (("user", QUESTION), "assistant")
    assert heard.startswith(begin)
    assert len(heard) < len(f"{begin} {end}")
    expect(voice.page.locator(".turn .unheard")).not_to_be_empty()
    expect(voice.caption("user")).to_have_text(QUESTION)
    card = voice.expect_card("reloaded")
    voice.page.screenshot(path=screenshots / "reloaded.png")
    card.get_by_role("button").click()
    expect(voice.page.locator(".turn")).to_have_count(3)
    voice.wait("listening")
    assert voice.turns() == [("user", QUESTION), ("assistant", begin), ("assistant", end)]


def test_a_reply_cut_off_by_a_reload_stays_when_something_else_is_asked(open_page: OpenPage) -> None:
    voice = open_page()
    voice.type("Help")
    voice.wait("ai-speaking")
    voice.wait_spoken(3)
    reload(voice)
    [_, (_, heard)] = voice.turns()
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")
    [help, cut_off, question, (role, reply)] = voice.turns()
    assert (help, cut_off, question) == (("user", "Help"), ("assistant", heard), ("user", "What is two plus two?"))
    assert (role, "4" in reply) == ("assistant", True)
    expect(voice.page.locator(".turn").nth(1).locator(".unheard")).not_to_be_empty()


def test_a_conversation_of_an_hour_ago_can_only_be_read(open_page: OpenPage, screenshots: Path) -> None:
    voice = open_page()
    hostile = "<img src=x onerror=alert(1)> 你好，世界 \u202e ‮ &amp; 👩‍👩‍👧‍👦"
    voice.type(hostile)
    voice.wait("ai-speaking")
    voice.wait("listening")
    voice.page.click("#end")
    voice.wait("idle")
    before = voice.turns()
    assert before[0] == ("user", hostile)
    reload(voice)
    assert voice.turns() == before
    expect(voice.page.locator(".card")).to_have_count(0)
    voice.page.clock.install(time=voice.page.evaluate("Date.now()") + 3_600_000)
    reload(voice)
    assert voice.turns()[:-1] == before
    assert "can only be read" in voice.turns()[-1][1]
    expect(voice.page.locator("#welcome")).to_be_visible()
    voice.page.screenshot(path=screenshots / "read-only.png")
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")
    assert voice.sent("conversation.item.create") == 1
    voice.page.click("#new-conversation")
    reload(voice)
    assert voice.turns() == []


@pytest.mark.usefixtures("operator_state")
def test_a_guests_words_stay_when_they_sign_in_and_go_when_they_sign_out(open_page: OpenPage) -> None:
    voice = open_page()
    voice.set_switch("is-spoken", False)
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")
    said = voice.turns()
    voice.page.click("#sign-in")
    voice.page.fill("#id_username", NAME)
    voice.page.fill("#id_password", PASSWORD)
    voice.page.get_by_role("button", name="Sign in").click()
    voice.page.wait_for_selector("body[data-loaded]")
    assert voice.turns() == said
    voice.page.get_by_role("button", name="Sign out").click()
    voice.page.wait_for_selector("#sign-in")
    voice.page.wait_for_selector("body[data-loaded]")
    assert voice.turns() == []
    assert "two plus two" not in voice.page.evaluate("JSON.stringify(sessionStorage)")
