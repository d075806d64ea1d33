"""Calls from a network that lets out TCP alone: everything goes through a relay, for those whose credentials hold."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from .calls import badge, statistics
from .conftest import OpenPage
from .page import VoicePage
from .server import Server, running
from .turn_server import SECRET, TurnServer, relaying

SpokenPage = Callable[..., VoicePage]

RELAY_ONLY = """(changes) => {
    window.peers = [];
    window.candidates = [];
    const Peer = window.RTCPeerConnection;
    window.RTCPeerConnection = class extends Peer {
        constructor({ iceServers }) {
            const servers = iceServers.map((server) => ({ ...server, ...changes }));
            super({ iceServers: servers, iceTransportPolicy: "relay" });
            window.peers.push(this);
            this.addEventListener("icecandidate", ({ candidate }) => {
                if (candidate?.candidate) window.candidates.push(candidate.candidate);
            });
        }
    };
}"""


def only_through_the_relay(voice: VoicePage, **changes: str) -> None:
    """Let the browser use nothing but the relay, with these changes to what the server said of it."""
    voice.page.evaluate(RELAY_ONLY, changes)


def credentials(expires_at: float, secret: str = SECRET) -> dict[str, str]:
    """As anybody makes them who knows the relay's secret."""
    username = f"{int(expires_at)}:somebody"
    digest = hmac.new(secret.encode(), username.encode(), hashlib.sha1).digest()
    return {"username": username, "credential": base64.b64encode(digest).decode()}


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TurnServer]:
    with relaying(tmp_path_factory.mktemp("relay")) as relay:
        yield relay


@pytest.fixture(scope="module")
def behind(relay: TurnServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that lends this relay to its callers."""
    place = tmp_path_factory.mktemp("behind")
    with running(place, TURN_URLS=relay.url, TURN_SECRET=SECRET) as server:
        yield server


def test_a_call_over_the_relay_is_heard_and_answered(
    spoken_page: SpokenPage, behind: Server, relay: TurnServer
) -> None:
    voice = spoken_page(4.0, "What time is it?", address=f"http://127.0.0.1:{behind.port}/", transport="webrtc")
    only_through_the_relay(voice)
    voice.talk()
    expect(badge(voice)).to_contain_text("WebRTC")
    voice.wait("ai-speaking")
    expect(voice.caption("assistant")).to_contain_text(re.compile("It is|It's"))
    local = statistics(voice, "local-candidate")
    assert (local["candidateType"], local["relayProtocol"]) == ("relay", "tcp")
    candidates = voice.page.evaluate("window.candidates")
    assert candidates
    assert all(" typ relay" in candidate for candidate in candidates)
    assert statistics(voice, "inbound-rtp")["packetsReceived"] > 10
    assert statistics(voice, "outbound-rtp")["packetsSent"] > 50
    assert SECRET not in voice.page.content() + behind.log


@pytest.mark.parametrize(
    "bad",
    [credentials(time.time() - 60), credentials(time.time() + 600, secret="guessed")],
    ids=["expired", "guessed"],
)
def test_credentials_that_do_not_hold_open_no_relay(
    open_page: OpenPage, behind: Server, relay: TurnServer, bad: dict[str, str]
) -> None:
    voice = open_page(f"http://127.0.0.1:{behind.port}/", transport="automatic")
    only_through_the_relay(voice, **bad)
    voice.type("What is two plus two?")
    voice.expect_card("no_udp")
    expect(badge(voice)).to_have_text("WebSocket")
    assert voice.page.evaluate("window.candidates") == []
    expect(voice.caption("assistant")).to_contain_text("4")
