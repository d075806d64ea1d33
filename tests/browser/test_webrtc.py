"""A person talks to the page over WebRTC: media tracks both ways, events on the data channel."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import TimeoutError as TookTooLong
from playwright.sync_api import expect

from tests.engines.speech import word_errors, words

from .calls import badge, recording, statistics, watch_peers
from .conftest import OpenPage
from .page import VoicePage
from .speech import recognised, trimmed

SpokenPage = Callable[..., VoicePage]

QUESTION = "What can you do?"
BARGE_IN_MS = 1500
"""Until words have shown that somebody interrupts; the reply is quiet meanwhile."""

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


WATCH_MICROPHONE = """() => {
    const SILENCE_MS = 2000; // longer than the server waits for more words
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    window.question = { hasBegun: false, isOver: false };
    navigator.mediaDevices.getUserMedia = async (wish) => {
        const stream = await ask(wish);
        const context = new AudioContext();
        const ear = context.createAnalyser();
        context.createMediaStreamSource(stream.clone()).connect(ear);
        const samples = new Float32Array(ear.fftSize);
        let loudAt = 0;
        setInterval(() => {
            ear.getFloatTimeDomainData(samples);
            if (samples.some((sample) => Math.abs(sample) > 0.02)) {
                window.question.hasBegun = true;
                loudAt = performance.now();
            } else {
                window.question.isOver = window.question.hasBegun && performance.now() - loudAt > SILENCE_MS;
            }
        }, 20);
        return stream;
    };
}"""
"""An ear at the microphone itself, muted or not: whether somebody has begun to speak into it, and has finished."""


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


def test_it_hears_a_question_and_is_heard_answering(spoken_page: SpokenPage, tmp_path: Path) -> None:
    """Well in one of some tries: a busy machine loses sound."""
    wrong = [misheard(spoken_page, tmp_path)]
    while not is_understood(*wrong[-1]) and len(wrong) < TRIES:
        wrong.append(misheard(spoken_page, tmp_path))
    assert is_understood(*wrong[-1]), wrong


def is_understood(question: int, recorded_question: int, reply_share: float) -> bool:
    return question <= 1 and recorded_question <= 1 and reply_share < 0.35


def misheard(spoken_page: SpokenPage, place: Path) -> tuple[int, int, float]:
    """Words of the question that the server misheard, words that a listener to the recorded microphone does, and the
    share of the reply's words that a listener to the loudspeaker does."""
    voice = spoken_page(5.0, QUESTION, transport=None)
    watch_peers(voice)
    voice.set_switch("is-recording", True)
    voice.talk()
    voice.wait("user-speaking")
    voice.wait("ai-speaking")
    question = word_errors(QUESTION, voice.caption("user").inner_text())
    expect(badge(voice)).to_have_text(re.compile(r"^WebRTC · \d+ ms · \d+ % lost$"))
    voice.wait_spoken(20)
    expect(voice.page.locator("#caption-assistant .upcoming")).not_to_be_empty()
    voice.wait("listening", timeout=60_000)
    expect(voice.page.locator("#caption-assistant .upcoming")).to_be_empty()

    reply = voice.caption("assistant").inner_text()
    expect(voice.page.locator("#waterfall")).to_contain_text("playback")
    parts = voice.page.locator(".waterfall-legend").text_content() or ""
    for stage in ("end of turn", "recognition", "first word", "first sound"):
        assert stage in parts
    total = re.search(r"(\d+) ms", parts)
    assert total is not None
    assert 0 < int(total[1]) < 20_000
    microphone, loudspeaker = recording(voice, place)
    heard, said = statistics(voice, "inbound-rtp"), statistics(voice, "outbound-rtp")
    assert heard["packetsReceived"] > 50
    assert said["packetsSent"] > 50
    assert heard["packetsLost"] == 0
    assert statistics(voice, "remote-inbound-rtp")["packetsLost"] == 0
    assert voice.sent("input_audio_buffer.append") == 0
    assert voice.sent("response.audio.delta") == 0
    return (
        question,
        word_errors(QUESTION, recognised(trimmed(microphone))),
        word_errors(reply, recognised(trimmed(loudspeaker))) / len(words(reply)),
    )


def test_it_falls_silent_when_it_is_interrupted(spoken_page: SpokenPage) -> None:
    """At once in one of some tries: on a busy machine all clocks are late."""
    found: list[tuple[float, float]] = []
    while len(found) < TRIES and not (found and is_prompt(*found[-1])):
        try:
            found.append(interrupted(spoken_page))
        except TookTooLong:  # so late that one of them had finished before the other began
            found.append((math.inf, math.inf))
    assert is_prompt(*found[-1]), found


def is_prompt(last_ms: float, silence_ms: float) -> bool:
    return -200 < last_ms < 100 and 0 < silence_ms < BARGE_IN_MS


def interrupted(spoken_page: SpokenPage) -> tuple[float, float]:
    """Interrupt an answer. Milliseconds to the last sound of it that reaches the loudspeaker: from the server's word
    that somebody speaks, and from its word that somebody may."""
    voice = spoken_page(5.0, QUESTION, 6.0, "What time is it?", transport="webrtc")
    voice.page.evaluate(WATCH_SOUND)
    voice.set_switch("is-recording", True)
    voice.talk()
    voice.wait("ai-speaking")
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
    ducked_at = next(at for kind, at in heard["told"] if kind == "response.audio.ducked")
    last_at = max(at for at in heard["loud"] if at < answered_at)
    return last_at - spoke_at, last_at - ducked_at


def test_a_muted_microphone_sends_silence(spoken_page: SpokenPage) -> None:
    voice = spoken_page(6.0, "How do I create an API key?", transport="webrtc")
    voice.page.evaluate(WATCH_MICROPHONE)
    voice.talk()
    voice.page.click("#mute")
    expect(voice.page.locator("#status")).to_have_text("Muted: tap or hold to speak")
    assert not voice.page.evaluate("window.question.hasBegun")
    voice.page.wait_for_function("() => window.question.isOver")
    assert voice.sent("input_audio_buffer.speech_started") == 0
    voice.type("What is two plus two?")
    expect(voice.caption("assistant")).to_contain_text("4")


def test_video_of_any_codec_is_accepted_and_ignored(open_page: OpenPage) -> None:
    voice = open_page()
    for codec, policy in (("AV1", "max-bundle"), ("VP9", "balanced"), ("H264", "max-compat"), ("VP8", "balanced")):
        found = voice.page.evaluate(CALL_WITH_VIDEO, {"codec": codec, "bundlePolicy": policy})
        assert found == ["session.created", "inactive", "sendrecv", "inactive"], codec
