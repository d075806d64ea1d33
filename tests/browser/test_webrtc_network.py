"""A call over WebRTC in networks and at servers that fail it, and its ways to and from the WebSocket."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from playwright.sync_api import expect

from tests.outages.faults import FaultProxy

from .calls import badge, close_udp, watch_peers
from .conftest import OpenPage
from .media_network import MediaNetwork

QUESTION = "What can you do?"


def test_a_reply_cut_by_the_network_goes_on_where_it_was_heard(open_page: OpenPage, proxy: FaultProxy) -> None:
    voice = open_page(transport="webrtc")
    with closing(MediaNetwork(voice)) as media:
        watch_peers(voice)
        voice.type(QUESTION)
        voice.wait("ai-speaking")
        voice.wait_spoken(30)
        last_words = " ".join(voice.caption("assistant").inner_text().split())[-30:]
        media.set_cut(True)
        proxy.set_down(True)
        voice.wait("reconnecting")
        assert voice.page.evaluate("window.peers[0].connectionState") == "connected"  # the browser notices later
        media.set_cut(False)
        proxy.set_down(False)
        voice.page.evaluate("window.dispatchEvent(new Event('online'))")
        expect(voice.page.locator(".turn[data-role='assistant'][data-state='done']")).to_contain_text(last_words)
        assert [role for role, _ in voice.turns()] == ["user", "assistant"]
        assert [voice.sent(f"session.{event}") for event in ("created", "resumed")] == [1, 1]


def test_a_refused_offer_leads_to_the_websocket(open_page: OpenPage) -> None:
    voice = open_page(transport="automatic")
    voice.page.route("**/voice/webrtc*", lambda route: route.fulfill(status=404, json={"code": "NotFound"}))
    voice.type("What is two plus two?")
    voice.expect_card("no_webrtc")
    expect(badge(voice)).to_have_text("WebSocket")
    expect(voice.caption("assistant")).to_contain_text("4")


def test_a_network_without_udp_is_named_and_leads_to_the_websocket(open_page: OpenPage, screenshots: Path) -> None:
    voice = open_page(transport="automatic")
    close_udp(voice)
    voice.type("What is two plus two?")
    card = voice.expect_card("no_udp")
    expect(card).to_contain_text("Connected over WebSocket")
    expect(card).to_contain_text("Your network blocks WebRTC")
    expect(card.get_by_role("link", name="Check the connection")).to_have_attribute("href", "/check")
    voice.page.screenshot(path=screenshots / "no-udp.png")
    expect(badge(voice)).to_have_text("WebSocket")
    expect(voice.caption("assistant")).to_contain_text("4")
    voice.page.click("#end")
    offers: list[str] = []
    voice.page.on("request", lambda request: offers.extend([request.url] if "/voice/webrtc" in request.url else []))
    voice.type("What is two plus three?")
    expect(voice.caption("assistant")).to_contain_text("5")
    voice.page.reload()
    voice.page.wait_for_selector("body[data-loaded]")
    voice.type("What is two plus four?")
    expect(voice.caption("assistant")).to_contain_text("6")
    assert offers == []  # this network is known by now
    voice.page.evaluate("dispatchEvent(new Event('online'))")  # another one
    voice.page.unroute("**/voice/webrtc*")
    voice.page.click("#end")
    voice.type("What is two plus five?")
    expect(voice.caption("assistant")).to_contain_text("7")
    expect(badge(voice)).to_contain_text("WebRTC")
    assert len(offers) == 1


def test_push_to_talk_and_the_settings_move_the_conversation_to_another_transport(open_page: OpenPage) -> None:
    voice = open_page(transport="automatic")
    voice.talk()
    expect(badge(voice)).to_contain_text("WebRTC")
    voice.page.click("#push-to-talk")
    expect(badge(voice)).to_have_text("WebSocket")
    expect(voice.page.locator("#status")).to_have_text("Hold the circle or the space bar")
    voice.page.click("#push-to-talk")
    expect(badge(voice)).to_contain_text("WebRTC")
    voice.wait("listening")
    voice.page.click("#open-settings")
    voice.page.select_option("#transport", "websocket")
    voice.page.keyboard.press("Escape")
    expect(badge(voice)).to_have_text("WebSocket")
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")
