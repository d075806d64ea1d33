"""A model of a service elsewhere: our server passes the offer on, sound goes straight between browser and service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from .calls import badge, close_udp, statistics, watch_peers
from .conftest import OpenPage
from .page import VoicePage
from .server import Server, running

SpokenPage = Callable[..., VoicePage]

MODEL = "qwen3-omni-flash-realtime"
ELSEWHERE_PORTS = range(41100, 41200)
OUR_PORTS = range(41300, 41400)


def port_range(ports: range) -> str:
    return f"{ports.start}-{ports.stop - 1}"


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """The service, a second installation of this product, and our key for it."""
    with running(tmp_path_factory.mktemp("elsewhere"), RTC_PORT_RANGE=port_range(ELSEWHERE_PORTS)) as server:
        yield server, server.new_key("Our product")


@pytest.fixture(scope="module")
def ours(elsewhere: tuple[Server, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    service, key = elsewhere
    with running(
        tmp_path_factory.mktemp("ours"),
        RTC_PORT_RANGE=port_range(OUR_PORTS),
        UPSTREAM_BASE_URL=f"http://127.0.0.1:{service.port}",
        UPSTREAM_API_KEY=key,
        UPSTREAM_REALTIME_MODEL=MODEL,
        UPSTREAM_MEDIA="direct",
    ) as server:
        yield server


def wait_for_session(server: Server, condition: str) -> None:
    assert server.row(f"SELECT DISTINCT 1 FROM realtime_realtimesession WHERE {condition}") == (1,)


def choose_upstream(voice: VoicePage) -> None:
    voice.page.click("#open-settings")
    voice.page.select_option("#model", "upstream")
    voice.page.keyboard.press("Escape")


def test_a_conversation_goes_straight_to_the_service_and_the_key_stays_here(
    spoken_page: SpokenPage, ours: Server, elsewhere: tuple[Server, str]
) -> None:
    service, key = elsewhere
    voice = spoken_page(4.0, "What time is it?", address=f"http://127.0.0.1:{ours.port}/", transport="automatic")
    bodies: list[str] = []
    voice.page.on("response", lambda answer: bodies.extend([answer.url] if "/voice/" in answer.url else []))
    watch_peers(voice)
    choose_upstream(voice)
    voice.talk()
    expect(badge(voice)).to_contain_text("WebRTC")
    voice.wait("ai-speaking")
    expect(voice.caption("assistant")).to_contain_text(re.compile("It is|It's"))

    remotes = voice.page.evaluate(
        """async () => [...(await window.peers.at(-1).getStats()).values()]
            .filter(({ type }) => type === "remote-candidate").map(({ port }) => port)"""
    )
    assert statistics(voice, "transport")["bytesReceived"] > 1000
    assert remotes
    assert all(port in ELSEWHERE_PORTS for port in remotes)
    assert "/api/v1/webrtc/realtime" in service.log
    assert "/api/v1/webrtc/realtime" not in ours.log

    sdp = voice.page.evaluate("window.peers.at(-1).localDescription.sdp + window.peers.at(-1).remoteDescription.sdp")
    config = voice.page.evaluate("async () => (await fetch('/voice/config')).text()")
    stored = voice.page.evaluate("JSON.stringify(localStorage)")
    assert f"127.0.0.1:{service.port}" not in config
    for place in (voice.page.content(), sdp, config, stored, ours.log, service.log):
        assert key not in place
    assert all(f":{ours.port}/" in address for address in bodies)
    here = ours.row("SELECT transport, model, is_guest, ended_at, served_by FROM realtime_realtimesession")
    assert here == ("relayed", "upstream", 1, None, "")
    transport, served_by = service.row("SELECT transport, served_by FROM realtime_realtimesession")
    assert transport == "webrtc"
    assert served_by
    wait_for_session(ours, "reported_at IS NOT NULL")
    voice.page.click("#end")
    wait_for_session(ours, "close_code = 1000")


def test_a_page_that_is_left_says_so(spoken_page: SpokenPage, ours: Server) -> None:
    voice = spoken_page(1.0, address=f"http://127.0.0.1:{ours.port}/", transport="automatic")
    choose_upstream(voice)
    voice.talk()
    wait_for_session(ours, "reported_at IS NOT NULL AND ended_at IS NULL")
    voice.page.goto(f"http://127.0.0.1:{ours.port}/privacy")
    wait_for_session(ours, "close_code = 1001")


def test_a_network_without_udp_is_led_through_this_server(open_page: OpenPage, ours: Server) -> None:
    voice = open_page(f"http://127.0.0.1:{ours.port}/", transport="automatic")
    close_udp(voice)
    choose_upstream(voice)
    voice.type("What is two plus two?")
    expect(badge(voice)).to_have_text("WebSocket")
    expect(voice.caption("assistant")).to_contain_text("4")


def test_a_service_that_is_down_is_named(open_page: OpenPage, ours: Server, elsewhere: tuple[Server, str]) -> None:
    """The last test here: the service is gone then."""
    service, key = elsewhere
    service.stop()
    voice = open_page(f"http://127.0.0.1:{ours.port}/", transport="automatic")
    choose_upstream(voice)
    voice.orb.click()
    card = voice.expect_card("refused")
    expect(card).to_contain_text("The service that runs this model cannot be reached")
    assert key not in ours.log + voice.page.content()
