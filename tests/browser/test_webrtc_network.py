"""A call over WebRTC in networks and at servers that fail it, and its ways to and from the WebSocket."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from playwright.sync_api import expect

from tests.engines.speech import word_errors, words
from tests.realtime.webrtc.network import Faults

from .calls import badge, close_udp, recording, statistics, watch_peers
from .conftest import OpenPage
from .media_network import MediaNetwork
from .page import VoicePage
from .proxy import Proxy
from .speech import recognised, trimmed

SpokenPage = Callable[..., VoicePage]

QUESTION = "What can you do?"
TRIES = 3


def test_a_cut_network_loses_nothing_that_was_said(open_page: OpenPage, proxy: Proxy) -> None:
    voice = open_page(transport="webrtc")
    with closing(MediaNetwork(voice)) as media:
        voice.type("What is two plus three?")
        voice.wait("ai-speaking")
        voice.wait("listening")
        before = voice.turns()
        media.set_cut(True)
        proxy.set_down(True)
        voice.type("What is two plus two?")  # nobody hears it now
        voice.wait("reconnecting")
        media.set_cut(False)
        proxy.set_down(False)
        voice.wait("ai-speaking")
        expect(voice.caption("assistant")).to_contain_text("4")
        voice.wait("listening")
        assert voice.turns()[:-1] == [*before, ("user", "What is two plus two?")]
        assert media.calls >= 2
        assert media.faults.passed > 100
        expect(badge(voice)).to_contain_text("WebRTC")
        voice.type("Can you repeat that?")  # the server knows the whole conversation again
        voice.wait("ai-speaking")
        expect(voice.caption("assistant")).to_contain_text("4")


def test_a_reply_cut_by_the_network_goes_on_where_it_was_heard(open_page: OpenPage, proxy: Proxy) -> None:
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


def test_a_bad_network_carries_question_and_answer(spoken_page: SpokenPage, tmp_path: Path) -> None:
    """In one of some tries: a busy machine loses sound as well."""
    wrong = [misheard_in_a_bad_network(spoken_page, tmp_path)]
    while max(wrong[-1]) >= 0.4 and len(wrong) < TRIES:
        wrong.append(misheard_in_a_bad_network(spoken_page, tmp_path))
    assert max(wrong[-1]) < 0.4, wrong


def misheard_in_a_bad_network(spoken_page: SpokenPage, place: Path) -> tuple[float, float]:
    """Shares of the words that the server misheard, and that a listener to the reply did."""
    voice = spoken_page(4.0, QUESTION, transport="webrtc")
    with closing(MediaNetwork(voice, Faults(loss=0.05, jitter_s=0.04))) as media:
        watch_peers(voice)
        voice.set_switch("is-recording", True)
        voice.talk()
        voice.wait("ai-speaking")
        misheard = word_errors(QUESTION, voice.caption("user").inner_text()) / len(words(QUESTION))
        voice.wait("listening", timeout=60_000)
        reply = voice.caption("assistant").inner_text()
        _, loudspeaker = recording(voice, place)
        assert statistics(voice, "remote-inbound-rtp")["packetsLost"] > 0
        assert media.faults.lost / (media.faults.lost + media.faults.passed) > 0.02
        return misheard, word_errors(reply, recognised(trimmed(loudspeaker))) / len(words(reply))


def test_a_short_gap_in_the_network_is_bridged(open_page: OpenPage) -> None:
    voice = open_page(transport="webrtc")
    with closing(MediaNetwork(voice)) as media:
        voice.talk()
        media.set_cut(True)
        voice.type("What is two plus two?")
        voice.page.wait_for_timeout(1500)  # shorter than any patience
        media.set_cut(False)
        expect(voice.caption("assistant")).to_contain_text("4")
        assert media.calls == 1
        assert [role for role, _ in voice.turns()] == ["user", "assistant"]


def test_a_refused_offer_leads_to_the_websocket(spoken_page: SpokenPage) -> None:
    voice = spoken_page(5.0, "What time is it?", transport="automatic")
    voice.page.route("**/voice/webrtc*", lambda route: route.fulfill(status=404, json={"code": "NotFound"}))
    voice.talk()
    voice.expect_card("no_webrtc")
    expect(badge(voice)).to_have_text("WebSocket")
    voice.wait("ai-speaking")
    expect(voice.caption("assistant")).to_contain_text(re.compile("It is|It's"))


def test_a_network_without_udp_is_named_and_leads_to_the_websocket(open_page: OpenPage, screenshots: Path) -> None:
    voice = open_page(transport="automatic")
    close_udp(voice)
    voice.type("What is two plus two?")
    card = voice.expect_card("no_udp")
    expect(card).to_contain_text("Connected over WebSocket")
    expect(card).to_contain_text("Your network blocks WebRTC")
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
