"""The page shows the passage that a spoken reply was taken from, and leads to its page of the manual."""

from __future__ import annotations

from playwright.sync_api import expect

from .conftest import OpenPage


def test_a_quotation_is_shown_with_a_link_until_the_next_question(open_page: OpenPage) -> None:
    voice = open_page()
    voice.type("How do I create an API key?")
    card = voice.page.locator("#source")
    expect(card).to_contain_text("createkey")
    expect(card.get_by_role("link", name="API keys")).to_have_attribute("href", "/docs/manual/api-keys")
    voice.wait("listening")
    expect(voice.caption("assistant")).not_to_contain_text("createkey")
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")
    expect(card).to_be_hidden()


def test_a_caption_and_the_transcript_say_who_wrote_a_reply(open_page: OpenPage) -> None:
    voice = open_page()
    voice.type("How do I create an API key?")
    author = voice.page.locator("#caption-author")
    expect(author).to_have_text("Document")
    voice.wait("listening")
    voice.type("What is two plus two?")
    expect(author).to_have_text("Skill")
    assert voice.page.locator(".turn-author").all_text_contents() == ["Document", "Skill"]
