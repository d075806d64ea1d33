"""A person talks to the page over WebRTC: media tracks both ways, events on the data channel."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from .conftest import OpenPage
from .page import VoicePage
from .proxy import Proxy
from .server import running
from .speech import channels, likeness, recognised, trimmed

SpokenPage = Callable[..., VoicePage]

WATCH_PEERS = """() => {
    window.peers = [];
    const Peer = window.RTCPeerConnection;
    window.RTCPeerConnection = class extends Peer {
        constructor(...options) { super(...options); window.peers.push(this); }
    };
}"""


def watch_peers(voice: VoicePage) -> None:
    """Keep the page's peer connections where `statistics` finds them."""
    voice.page.evaluate(WATCH_PEERS)


def statistics(voice: VoicePage, kind: str) -> dict[str, Any]:
    """The browser's own report of the last call: `inbound-rtp`, `outbound-rtp`, `candidate-pair`, …"""
    reports = voice.page.evaluate("async () => [...(await window.peers.at(-1).getStats()).values()]")
    return next(report for report in reports if report["type"] == kind)


def badge(voice: VoicePage) -> Any:
    return voice.page.locator("#link-transport")


def test_it_hears_a_question_and_is_heard_answering(spoken_page: SpokenPage, tmp_path: Path) -> None:
    voice = spoken_page(1.5, "What can you do?", transport="automatic")
    watch_peers(voice)
    voice.set_switch("is-recording", True)
    voice.talk()
    voice.wait("user-speaking")
    voice.wait("ai-speaking")
    assert likeness(voice.caption("user").inner_text(), "What can you do?") > 0.7
    expect(badge(voice)).to_have_text(re.compile(r"^WebRTC · \d+ ms · \d+ % lost$"))
    voice.wait("listening", timeout=40_000)

    reply = voice.caption("assistant").inner_text()
    assert "flip a coin" in reply
    expect(voice.page.locator("#waterfall")).to_contain_text("playout")
    with voice.page.expect_download() as saved:
        voice.page.click("#export-wav")
    recording = tmp_path / "conversation.wav"
    saved.value.save_as(recording)
    microphone, loudspeaker = channels(recording)
    assert likeness(recognised(trimmed(loudspeaker)), reply) > 0.6
    assert likeness(recognised(trimmed(microphone)), "What can you do?") > 0.6

    assert statistics(voice, "inbound-rtp")["packetsReceived"] > 50
    assert statistics(voice, "outbound-rtp")["packetsSent"] > 50
    assert voice.sent("input_audio_buffer.append") == 0
    assert voice.sent("response.audio.delta") == 0


def test_it_falls_silent_when_it_is_interrupted(spoken_page: SpokenPage) -> None:
    voice = spoken_page(1.5, "What can you do?", 4.5, "What time is it?", transport="webrtc")
    voice.talk()
    voice.wait("ai-speaking")
    voice.wait("user-speaking", timeout=10_000)
    unheard = voice.page.locator(".turn .unheard")
    expect(unheard.first).to_be_attached()
    assert unheard.first.inner_text().strip()
    expect(voice.caption("assistant")).to_contain_text(re.compile("It is|It's"), timeout=15_000)
    assert [role for role, _ in voice.turns()] == ["user", "assistant", "user", "assistant"]
    assert voice.sent("conversation.item.truncate") >= 1
    assert voice.sent("conversation.item.truncated") >= 1


def test_the_button_interrupts_and_the_next_answer_is_heard(open_page: OpenPage) -> None:
    voice = open_page(transport="webrtc")
    voice.type("How do I create an API key?")
    voice.wait("ai-speaking")
    voice.wait_spoken(20)
    voice.orb.click()
    voice.wait("listening")
    expect(voice.page.locator("#caption-assistant .unheard")).not_to_be_empty()
    voice.type("What is two plus two?")
    voice.wait("ai-speaking")
    expect(voice.caption("assistant")).to_contain_text("4")
    voice.wait("listening")


def test_the_caption_follows_the_voice_to_its_end(open_page: OpenPage) -> None:
    voice = open_page(transport="webrtc")
    voice.type("How do I create an API key?")
    voice.wait("ai-speaking")
    voice.wait_spoken(20)
    expect(voice.page.locator("#caption-assistant .upcoming")).not_to_be_empty()
    voice.wait("listening", timeout=40_000)
    expect(voice.page.locator("#caption-assistant .upcoming")).to_be_empty()
    replay = voice.page.locator(".turn-replay")
    replay.click()
    expect(replay).to_be_disabled()


def test_a_muted_microphone_sends_silence(spoken_page: SpokenPage) -> None:
    voice = spoken_page(3.0, "How do I create an API key?", transport="webrtc")
    voice.talk()
    voice.page.click("#mute")
    expect(voice.page.locator("#status")).to_have_text("Muted")
    voice.page.wait_for_timeout(6000)  # the question passes unheard
    assert voice.sent("input_audio_buffer.speech_started") == 0
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")


def test_a_restarted_server_is_found_again_and_the_conversation_goes_on(open_page: OpenPage, tmp_path: Path) -> None:
    with running(tmp_path) as server:
        voice = open_page(f"http://127.0.0.1:{server.port}/", transport="webrtc")
        voice.type("How do I create an API key?")
        voice.wait("ai-speaking")
        voice.wait("listening", timeout=40_000)
        before = voice.turns()
        server.kill()
        voice.wait("reconnecting", timeout=20_000)
        server.start()
        voice.wait("listening", timeout=30_000)
        assert voice.turns() == before
        expect(badge(voice)).to_contain_text("WebRTC")
        voice.type("Can you repeat that?")
        voice.wait("ai-speaking")
        expect(voice.caption("assistant")).to_contain_text("createkey")


def test_a_refused_offer_leads_to_the_websocket(spoken_page: SpokenPage) -> None:
    voice = spoken_page(3.0, "What time is it?", transport="automatic")
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
    expect(card).to_contain_text("No UDP here")
    voice.page.screenshot(path=screenshots / "no-udp.png")
    expect(badge(voice)).to_have_text("WebSocket")
    expect(voice.caption("assistant")).to_contain_text("4")
    voice.page.click("#end")
    offers: list[str] = []
    voice.page.on("request", lambda request: "/voice/webrtc" in request.url and offers.append(request.url))
    voice.type("What is two plus three?")
    expect(voice.caption("assistant")).to_contain_text("5")
    assert offers == []  # this network is known by now


def test_a_capacity_refusal_lets_people_stand_in_line(open_page: OpenPage, tmp_path: Path) -> None:
    with running(tmp_path, MAX_SESSIONS="1", GUEST_SESSIONS_TOTAL="1") as small:
        address = f"http://127.0.0.1:{small.port}/"
        first, second = open_page(address, transport="webrtc"), open_page(address, transport="webrtc")
        first.talk()
        second.orb.click()
        second.wait("queued")
        first.page.click("#end")
        second.wait("your-turn", timeout=20_000)
        second.orb.click()
        second.wait("listening")
        expect(badge(second)).to_contain_text("WebRTC")


def test_a_session_that_is_over_says_so(open_page: OpenPage, tmp_path: Path) -> None:
    with running(tmp_path, GUEST_SESSION_S="4") as brief:
        voice = open_page(f"http://127.0.0.1:{brief.port}/", transport="webrtc")
        voice.type("What is two plus two?")
        voice.wait("ai-speaking")
        card = voice.expect_card("session_over")
        card.get_by_role("button").click()
        voice.wait("listening")


def test_push_to_talk_moves_the_conversation_to_the_websocket_and_back(open_page: OpenPage, proxy: Proxy) -> None:
    voice = open_page(transport="automatic")
    voice.talk()
    expect(badge(voice)).to_contain_text("WebRTC")
    voice.page.click("#push-to-talk")
    expect(badge(voice)).to_have_text("WebSocket")
    expect(voice.page.locator("#status")).to_have_text("Hold the circle or the space bar")
    voice.page.click("#push-to-talk")
    expect(badge(voice)).to_contain_text("WebRTC")
    voice.wait("listening")


def test_the_transport_is_chosen_in_the_settings(open_page: OpenPage) -> None:
    voice = open_page(transport="automatic")
    voice.talk()
    expect(badge(voice)).to_contain_text("WebRTC")
    voice.page.click("#open-settings")
    voice.page.select_option("#transport", "websocket")
    voice.page.keyboard.press("Escape")
    expect(badge(voice)).to_have_text("WebSocket")
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")


def close_udp(voice: VoicePage) -> None:
    """From now on the answers to this page's offers lead nowhere."""

    def misdirect(route: Any) -> None:
        answer = route.fetch()
        sdp = re.sub(r"^(a=candidate:\S+ \d+ \S+ \d+) \S+ \d+", r"\1 192.0.2.99 9", answer.text(), flags=re.MULTILINE)
        route.fulfill(response=answer, body=re.sub(r"a=ice-pwd:\S+", "a=ice-pwd:" + "x" * 24, sdp))

    voice.page.route("**/voice/webrtc*", misdirect)
