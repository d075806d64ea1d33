"""Calls of the page over WebRTC, as the tests look into them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from .page import VoicePage
from .speech import channels

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


def recording(voice: VoicePage, place: Path) -> list[np.ndarray]:
    """Microphone and loudspeaker so far, 16 kHz, side by side in time."""
    with voice.page.expect_download() as saved:
        voice.page.click("#export-wav")
    saved.value.save_as(place / "conversation.wav")
    return channels(place / "conversation.wav")


def close_udp(voice: VoicePage) -> None:
    """From now on the answers to this page's offers lead nowhere."""

    def misdirect(route: Any) -> None:
        answer = route.fetch()
        sdp = re.sub(r"^(a=candidate:\S+ \d+ \S+ \d+) \S+ \d+", r"\1 192.0.2.99 9", answer.text(), flags=re.MULTILINE)
        route.fulfill(response=answer, body=re.sub(r"a=ice-pwd:\S+", "a=ice-pwd:" + "x" * 24, sdp))

    voice.page.route("**/voice/webrtc*", misdirect)
