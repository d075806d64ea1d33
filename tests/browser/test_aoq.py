"""A person talks to the page over AOQ: tracks of Media over QUIC in a WebTransport session."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.engines.speech import word_errors, words
from tests.ports import free_udp_port
from tests.prepared import LIGHT_VOICE, environment_of, prepare
from tests.realtime.webrtc.network import Faults, in_front
from tests.serving import ServerProcess
from tests.thorough import IS_THOROUGH

from .calls import recording
from .conftest import OpenPage
from .page import VoicePage
from .server import Server, running
from .speech import recognised, trimmed

QUESTION = "What can you do?"
WATCH = """() => {
    window.states = [];
    new MutationObserver(() => window.states.push(document.body.dataset.state))
        .observe(document.body, { attributeFilter: ["data-state"] });
}"""
FALL_THROUGH_S = 4.0
LOOKED = """() => {
    window.looked = [];
    for (const name of ["RTCPeerConnection", "WebTransport"]) {
        window[name] = class { constructor() { window.looked.push(name); throw new Error("No UDP here."); } };
    }
}"""
TRIES = 3
ENDS = 30 if IS_THOROUGH else 1


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose relay is far away: one that a test adds is nearer."""
    variables: dict[str, Any] = {"AOQ_PORT": str(free_udp_port()), "AOQ_REGION": "far", "DEFAULT_VOICE": ""}
    with running(tmp_path_factory.mktemp("relay"), **variables) as server:
        yield server


def add_relay(server: Server, port: int, fingerprint: str) -> None:
    """Tell the server of a relay on this port, which lives for ever and is nearer than its own."""
    server.execute(
        "INSERT INTO realtime_aoqrelay (endpoint, port, region, fingerprint, load, capacity, is_draining,"
        " heartbeat_at, served_by) VALUES ('127.0.0.1', ?, '', ?, 0, 9, 0, '2999-01-01 00:00:00', 'elsewhere')",
        port,
        fingerprint,
    )


@contextmanager
def proxied(port: int, faults: Faults) -> Iterator[int]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    network = AsyncExitStack()
    opening = network.enter_async_context(in_front(("127.0.0.1", port), faults))
    try:
        yield asyncio.run_coroutine_threadsafe(opening, loop).result(30)
    finally:
        asyncio.run_coroutine_threadsafe(network.aclose(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}/"


def test_it_hears_a_question_and_is_heard_answering(
    relay: Server, spoken_page: Callable[..., VoicePage], tmp_path: Path
) -> None:
    voice = spoken_page(3.0, QUESTION, address=address(relay), transport=None)
    voice.set_switch("is-recording", True)
    voice.talk()
    voice.wait("user-speaking")
    voice.wait("ai-speaking")
    expect(voice.page.locator("#link-transport")).to_have_text(re.compile(r"^AOQ( · \d+ ms)?$"))
    assert word_errors(QUESTION, voice.caption("user").inner_text()) <= 1
    voice.wait("listening", timeout=60_000)

    reply = voice.caption("assistant").inner_text()
    assert "tell you the time" in reply
    assert voice.sent("input_audio_buffer.append") == 0
    assert voice.sent("response.audio.delta") == 0
    _, loudspeaker = recording(voice, tmp_path)
    voice.page.click("#end")
    assert word_errors(reply, recognised(trimmed(loudspeaker))) / len(words(reply)) < 0.35
    assert relay.row("SELECT close_code, transport FROM realtime_realtimesession WHERE ended_at IS NOT NULL") == (
        1000,
        "aoq",
    )


def test_a_page_that_is_left_in_a_call_complains_of_nothing(relay: Server, open_page: OpenPage) -> None:
    left = "SELECT close_code FROM realtime_realtimesession WHERE close_code = 1001"
    before = len(relay.rows(left))
    voice = open_page(address(relay), transport=None)
    voice.type(QUESTION)
    voice.wait("ai-speaking")
    expect(voice.page.locator("#link-transport")).to_have_text(re.compile("^AOQ"))
    voice.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))")  # of a page that is gone, less is told
    voice.wait("reconnecting")
    voice.wait("listening")
    voice.page.close()
    assert relay.row(f"{left} LIMIT 1 OFFSET {before}") == (1001,)


def test_the_policy_lists_the_relay_and_nothing_else(relay: Server, open_page: OpenPage) -> None:
    voice = open_page(address(relay))
    policy = voice.page.evaluate("async () => (await fetch(location.href)).headers.get('Content-Security-Policy')")
    (connect,) = re.findall(r"connect-src ([^;]*)", policy)
    assert re.fullmatch(r"'self' https://127\.0\.0\.1:\d+", connect)


def test_a_cut_in_the_middle_of_a_reply_moves_the_conversation_to_another_transport(
    relay: Server, open_page: OpenPage
) -> None:
    port, fingerprint = relay.row("SELECT port, fingerprint FROM realtime_aoqrelay")
    faults = Faults()
    with proxied(int(str(port)), faults) as front:
        add_relay(relay, front, str(fingerprint))
        voice = open_page(address(relay), transport=None)
        badge = voice.page.locator("#link-transport")
        voice.type("What can you do?")
        voice.wait("ai-speaking")
        expect(badge).to_have_text(re.compile("^AOQ"))
        voice.wait_spoken()
        faults.is_cut = True
        voice.page.evaluate(WATCH)
        expect(badge).to_have_text(re.compile("^WebRTC"))
        voice.wait("listening", timeout=60_000)
        assert [role for role, _ in voice.turns()] == ["user", "assistant"]
        assert [voice.sent(f"session.{event}") for event in ("created", "resumed")] == [1, 1]
        assert voice.page.evaluate("window.states")[:1] == ["reconnecting"]
        said = " ".join(text for _, text in voice.turns())
        assert said.count("tell you the time") == said.count("about this program") == 1, said
        voice.page.click("#end")
    relay.execute("DELETE FROM realtime_aoqrelay WHERE served_by = 'elsewhere'")


@pytest.mark.timeout(120 * ENDS)
def test_the_tab_survives_the_ends_of_the_server_and_comes_back(relay: Server, open_page: OpenPage) -> None:
    """Chromium has crashed at sessions that ended while tracks were streaming, now and then."""
    for _ in range(ENDS):
        voice = open_page(address(relay), transport=None)  # one that lost several would not come back so soon
        voice.type("What time is it?")
        voice.wait("ai-speaking")
        relay.stop()
        voice.wait("reconnecting")
        relay.start()
        voice.wait("listening")
        expect(voice.page.locator("#link-transport")).to_have_text(re.compile("^(AOQ|WebRTC)"))
        voice.page.click("#end")


def test_it_falls_through_where_no_udp_comes_back(tmp_path: Path, open_page: OpenPage) -> None:
    """At once in one of some tries: on a busy machine all clocks are late."""
    with socket.socket(type=socket.SOCK_DGRAM) as silent, running(tmp_path, RTC_ENABLED="0") as server:
        silent.bind(("127.0.0.1", 0))
        add_relay(server, silent.getsockname()[1], "ab" * 32)
        took_s: list[float] = []
        while len(took_s) < TRIES and not (took_s and took_s[-1] < FALL_THROUGH_S):
            voice = open_page(address(server), transport=None)
            begun = time.monotonic()
            voice.talk()
            took_s.append(time.monotonic() - begun)
            badge = voice.page.locator("#link-transport")
            expect(badge).to_have_text("WebSocket")
            assert "AOQ: No relay was reached." in (badge.get_attribute("title") or "")
            voice.page.click("#end")
            voice.wait("idle")
    assert took_s[-1] < FALL_THROUGH_S, took_s


@pytest.mark.parametrize(("enabled", "looked"), [("0", []), ("1", ["WebTransport", "RTCPeerConnection"])])
def test_the_page_does_not_look_for_udp_where_none_comes_in(
    tmp_path: Path, open_page: OpenPage, enabled: str, looked: list[str]
) -> None:
    prepare(tmp_path)
    variables = environment_of(tmp_path) | LIGHT_VOICE | {"RTC_ENABLED": enabled}
    del variables["AOQ_PORT"]
    server = ServerProcess(variables, port=free_udp_port())
    try:
        server.wait_until_ready()
        voice = open_page(f"{server.origin}/", transport=None)
        voice.page.evaluate(LOOKED)
        voice.talk()
        expect(voice.page.locator("#link-transport")).to_have_text("WebSocket")
        assert voice.page.evaluate("window.looked") == looked
    finally:
        server.stop()
