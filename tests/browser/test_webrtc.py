"""A person talks to the page over WebRTC: media tracks both ways, events on the data channel."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.engines.speech import word_errors, words
from tests.realtime.webrtc.network import Faults
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ

from .conftest import OpenPage
from .media_network import MediaNetwork
from .page import VoicePage
from .proxy import Proxy
from .server import running
from .speech import channels, recognised, trimmed

SpokenPage = Callable[..., VoicePage]

QUESTION = "What can you do?"
BARGE_IN_MS = 500
"""From the first sound of an interruption to silence: recognising speech as such takes the larger part."""

TRIES = 3

WATCH_SOUND = """() => {
    window.heard = { told: [], loud: [] };
    const { send } = RTCDataChannel.prototype;
    const known = new WeakSet();
    RTCDataChannel.prototype.send = function (...what) {
        if (!known.has(this)) {
            known.add(this);
            this.addEventListener("message", ({ data }) => {
                window.heard.told.push([JSON.parse(data).type, performance.now()]);
            });
        }
        return send.apply(this, what);
    };
    const Node = window.AudioWorkletNode;
    window.AudioWorkletNode = class extends Node {
        constructor(context, name, options) {
            super(context, name, options);
            if (name === "playback") {
                this.port.addEventListener("message", ({ data }) => {
                    if (data.kind === "rendered" && data.samples.some((sample) => Math.abs(sample) > 0.01)) {
                        window.heard.loud.push(performance.now());
                    }
                });
            }
        }
    };
}"""
"""Keeps when which event arrived, and when blocks of sound were given to the loudspeaker."""

WATCH_PEERS = """() => {
    window.peers = [];
    const Peer = window.RTCPeerConnection;
    window.RTCPeerConnection = class extends Peer {
        constructor(...options) { super(...options); window.peers.push(this); }
    };
}"""


CALL_WITH_VIDEO = """async ({ codec, bundlePolicy }) => {
    const { csrf_token } = await (await fetch("/voice/config")).json();
    const peer = new RTCPeerConnection({ bundlePolicy });
    try {
        const { codecs } = RTCRtpReceiver.getCapabilities("video");
        const camera = peer.addTransceiver("video");
        camera.setCodecPreferences(codecs.filter(({ mimeType }) => mimeType === `video/${codec}`));
        peer.addTransceiver("audio");
        peer.addTransceiver("video");
        const channel = peer.createDataChannel("any");
        const told = new Promise((resolve) => {
            channel.addEventListener("message", ({ data }) => resolve(JSON.parse(data).type), { once: true });
        });
        await peer.setLocalDescription();
        while (peer.iceGatheringState !== "complete") {
            await new Promise((resolve) => {
                peer.addEventListener("icegatheringstatechange", resolve, { once: true });
            });
        }
        const answer = await fetch("/voice/webrtc?model=voice", {
            method: "POST",
            headers: { "Content-Type": "application/sdp", "X-CSRFToken": csrf_token },
            body: peer.localDescription.sdp,
        });
        await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
        return [await told, ...peer.getTransceivers().map(({ currentDirection }) => currentDirection)];
    } finally {
        peer.close();
    }
}"""
"""What a page of somebody else's may do: a camera before the microphone, and a screen after it."""


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
    voice = spoken_page(3.0, QUESTION, transport=None)
    watch_peers(voice)
    voice.set_switch("is-recording", True)
    voice.talk()
    voice.wait("user-speaking")
    voice.wait("ai-speaking")
    assert word_errors(QUESTION, voice.caption("user").inner_text()) <= 1
    expect(badge(voice)).to_have_text(re.compile(r"^WebRTC · \d+ ms · \d+ % lost$"))
    voice.wait("listening", timeout=60_000)

    reply = voice.caption("assistant").inner_text()
    assert "flip a coin" in reply
    expect(voice.page.locator("#waterfall")).to_contain_text("playout")
    microphone, loudspeaker = recording(voice, tmp_path)
    assert word_errors(reply, recognised(trimmed(loudspeaker))) / len(words(reply)) < 0.35
    assert word_errors(QUESTION, recognised(trimmed(microphone))) <= 1

    heard, said = statistics(voice, "inbound-rtp"), statistics(voice, "outbound-rtp")
    assert heard["packetsReceived"] > 50
    assert said["packetsSent"] > 50
    assert heard["packetsLost"] == 0
    assert statistics(voice, "remote-inbound-rtp")["packetsLost"] == 0
    assert voice.sent("input_audio_buffer.append") == 0
    assert voice.sent("response.audio.delta") == 0


def test_it_falls_silent_when_it_is_interrupted(spoken_page: SpokenPage, tmp_path: Path) -> None:
    """At once in one of some tries: on a busy machine all clocks are late."""
    found = [interrupted(spoken_page, tmp_path)]
    while not is_prompt(*found[-1]) and len(found) < TRIES:
        found.append(interrupted(spoken_page, tmp_path))
    assert is_prompt(*found[-1]), found


def is_prompt(last_ms: float, silence_ms: float) -> bool:
    return -200 < last_ms < 100 and 0 < silence_ms < BARGE_IN_MS


def interrupted(spoken_page: SpokenPage, place: Path) -> tuple[float, float]:
    """Interrupt an answer. Milliseconds to the last sound of it: from the server's word that somebody speaks to what
    reaches the loudspeaker, and from the first sound of the person, as an ear between the two would measure."""
    voice = spoken_page(3.0, QUESTION, 6.0, "What time is it?", transport="webrtc")
    voice.page.evaluate(WATCH_SOUND)
    voice.set_switch("is-recording", True)
    voice.talk()
    voice.wait("ai-speaking")
    voice.wait("user-speaking")
    unheard = voice.page.locator(".turn .unheard")
    expect(unheard.first).to_be_attached()
    assert unheard.first.inner_text().strip()
    expect(voice.caption("assistant")).to_contain_text(re.compile("It is|It's"))
    voice.wait("listening")
    assert [role for role, _ in voice.turns()] == ["user", "assistant", "user", "assistant"]
    assert voice.sent("conversation.item.truncate") >= 1
    assert voice.sent("conversation.item.truncated") >= 1

    heard = voice.page.evaluate("window.heard")
    _, spoke_at = (at for kind, at in heard["told"] if kind == "input_audio_buffer.speech_started")
    answered_at = [at for kind, at in heard["told"] if kind == "response.created"][1]
    last_ms = max(at for at in heard["loud"] if at < answered_at) - spoke_at
    microphone, loudspeaker = recording(voice, place)
    interrupts_s, _ = stretches(microphone)[1]
    return last_ms, 1000 * (max(end for begin, end in stretches(loudspeaker) if begin < interrupts_s) - interrupts_s)


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
    voice.wait("listening", timeout=60_000)
    expect(voice.page.locator("#caption-assistant .upcoming")).to_be_empty()
    replay = voice.page.locator(".turn-replay")
    replay.click()
    expect(replay).to_be_disabled()


def test_a_muted_microphone_sends_silence(spoken_page: SpokenPage) -> None:
    voice = spoken_page(5.0, "How do I create an API key?", transport="webrtc")
    voice.talk()
    voice.page.click("#mute")
    expect(voice.page.locator("#status")).to_have_text("Muted")
    voice.page.wait_for_timeout(8000)  # the question passes unheard
    assert voice.sent("input_audio_buffer.speech_started") == 0
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")


def test_a_restarted_server_is_found_again_and_the_conversation_goes_on(open_page: OpenPage, tmp_path: Path) -> None:
    with running(tmp_path) as server:
        voice = open_page(f"http://127.0.0.1:{server.port}/", transport="webrtc")
        voice.type("What is two plus two?")
        voice.wait("ai-speaking")
        voice.wait("listening")
        before = voice.turns()
        server.kill()
        voice.wait("reconnecting")
        server.start()
        voice.wait("listening", timeout=60_000)
        assert voice.turns() == before
        expect(badge(voice)).to_contain_text("WebRTC")
        voice.type("Can you repeat that?")
        voice.wait("ai-speaking")
        expect(voice.caption("assistant")).to_contain_text("4")


def test_a_cut_network_loses_nothing_that_was_said(open_page: OpenPage, proxy: Proxy) -> None:
    voice = open_page(transport="webrtc")
    media = MediaNetwork(voice)
    try:
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
    finally:
        media.close()


def test_a_bad_network_carries_question_and_answer(spoken_page: SpokenPage, tmp_path: Path) -> None:
    voice = spoken_page(4.0, QUESTION, transport="webrtc")
    media = MediaNetwork(voice, Faults(loss=0.05, jitter_s=0.04))
    try:
        watch_peers(voice)
        voice.set_switch("is-recording", True)
        voice.talk()
        voice.wait("ai-speaking")
        assert word_errors(QUESTION, voice.caption("user").inner_text()) <= 1
        voice.wait("listening", timeout=60_000)
        reply = voice.caption("assistant").inner_text()
        _, loudspeaker = recording(voice, tmp_path)
        assert word_errors(reply, recognised(trimmed(loudspeaker))) / len(words(reply)) < 0.4
        assert statistics(voice, "remote-inbound-rtp")["packetsLost"] > 0
        assert media.faults.lost / (media.faults.lost + media.faults.passed) > 0.02
    finally:
        media.close()


def test_a_short_gap_in_the_network_is_bridged(open_page: OpenPage) -> None:
    voice = open_page(transport="webrtc")
    media = MediaNetwork(voice)
    try:
        voice.talk()
        media.set_cut(True)
        voice.type("What is two plus two?")
        voice.page.wait_for_timeout(1500)  # shorter than any patience
        media.set_cut(False)
        expect(voice.caption("assistant")).to_contain_text("4")
        assert media.calls == 1
        assert [role for role, _ in voice.turns()] == ["user", "assistant"]
    finally:
        media.close()


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
    expect(card).to_contain_text("No UDP here")
    voice.page.screenshot(path=screenshots / "no-udp.png")
    expect(badge(voice)).to_have_text("WebSocket")
    expect(voice.caption("assistant")).to_contain_text("4")
    voice.page.click("#end")
    offers: list[str] = []
    voice.page.on("request", lambda request: "/voice/webrtc" in request.url and offers.append(request.url))
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


def test_a_capacity_refusal_lets_people_stand_in_line(open_page: OpenPage, tmp_path: Path) -> None:
    with running(tmp_path, MAX_SESSIONS="1", GUEST_SESSIONS_TOTAL="1") as small:
        address = f"http://127.0.0.1:{small.port}/"
        first, second = open_page(address, transport="webrtc"), open_page(address, transport="webrtc")
        first.talk()
        second.orb.click()
        second.wait("queued")
        first.page.click("#end")
        second.wait("your-turn")
        second.orb.click()
        second.wait("listening")
        expect(badge(second)).to_contain_text("WebRTC")


def test_a_session_that_is_over_says_so(open_page: OpenPage, tmp_path: Path) -> None:
    with running(tmp_path, GUEST_SESSION_S="8") as brief:
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


def recording(voice: VoicePage, place: Path) -> list[np.ndarray]:
    """Microphone and loudspeaker so far, 16 kHz, side by side in time."""
    with voice.page.expect_download() as saved:
        voice.page.click("#export-wav")
    saved.value.save_as(place / "conversation.wav")
    return channels(place / "conversation.wav")


def stretches(samples: np.ndarray, gap_s: float = 1.0) -> list[tuple[float, float]]:
    """Where there is sound, (begin, end) in seconds; pauses shorter than `gap_s` belong to it."""
    at = np.flatnonzero(np.abs(samples) > 0.01) / ENGINE_SAMPLE_RATE_HZ
    breaks = np.flatnonzero(np.diff(at) > gap_s)
    return [(float(at[a]), float(at[b])) for a, b in zip([0, *breaks + 1], [*breaks, at.size - 1], strict=True)]


def close_udp(voice: VoicePage) -> None:
    """From now on the answers to this page's offers lead nowhere."""

    def misdirect(route: Any) -> None:
        answer = route.fetch()
        sdp = re.sub(r"^(a=candidate:\S+ \d+ \S+ \d+) \S+ \d+", r"\1 192.0.2.99 9", answer.text(), flags=re.MULTILINE)
        route.fulfill(response=answer, body=re.sub(r"a=ice-pwd:\S+", "a=ice-pwd:" + "x" * 24, sdp))

    voice.page.route("**/voice/webrtc*", misdirect)


@pytest.mark.parametrize(
    ("codec", "policy"), [("AV1", "max-bundle"), ("VP9", "balanced"), ("H264", "max-compat"), ("VP8", "balanced")]
)
def test_video_of_any_codec_is_accepted_and_ignored(open_page: OpenPage, codec: str, policy: str) -> None:
    voice = open_page()
    found = voice.page.evaluate(CALL_WITH_VIDEO, {"codec": codec, "bundlePolicy": policy})
    assert found == ["session.created", "inactive", "sendrecv", "inactive"]
