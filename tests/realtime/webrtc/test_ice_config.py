"""Servers, relays, addresses and ports of a call."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import cast

import aiohttp
import pytest
from aioice import stun
from aiortc import RTCIceTransportPolicy, RTCPeerConnection
from pytest_django import Settings

from tests.browser import turn_server
from tests.ports import free_port
from tests.realtime.conftest import Serve
from tests.realtime.webrtc.caller import calling, post_offer
from voiceapp import ice
from voiceapp.errors import EngineUnavailable
from voiceapp.realtime.transports.webrtc import WebRtcTransport
from voiceapp.realtime.webrtc import ice_config, sdp

CANDIDATE = re.compile(r"^a=candidate:\S+ 1 udp \d+ (\S+) (\d+) typ (\S+)", re.MULTILINE)


def test_a_server_with_a_public_address_needs_no_others() -> None:
    assert ice.ice_servers("alice", 60) == []
    assert ice.available()


def test_relay_credentials_are_good_for_a_while_and_name_nobody(settings: Settings) -> None:
    settings.ICE_SERVERS = ["stun:stun.example.org"]
    settings.TURN_URLS, settings.TURN_SECRET = ["turn:turn.example.org?transport=tcp"], "secret"
    stun, turn = ice.ice_servers("alice", 600)
    assert stun == {"urls": ["stun:stun.example.org"]}
    assert turn["urls"] == ["turn:turn.example.org?transport=tcp"]
    expiry, _, label = turn["username"].partition(":")
    assert int(expiry) == pytest.approx(time.time() + 660, abs=5)
    assert "alice" not in label
    digest = hmac.new(b"secret", turn["username"].encode(), hashlib.sha1).digest()
    assert base64.b64decode(turn["credential"]) == digest


def test_the_server_uses_the_relay_only_where_it_must(settings: Settings) -> None:
    settings.TURN_URLS, settings.TURN_SECRET = ["turn:turn.example.org?transport=tcp"], "secret"
    assert ice_config.configuration(60).iceServers == []
    settings.RTC_FORCE_RELAY = True
    forced = ice_config.configuration(60)
    assert forced.iceTransportPolicy is RTCIceTransportPolicy.RELAY
    assert forced.iceServers is not None
    assert forced.iceServers[0].urls == ["turn:turn.example.org?transport=tcp"]
    assert forced.iceServers[0].username


async def test_the_public_address_takes_the_place_of_the_machine_s(settings: Settings, offer: str) -> None:
    settings.RTC_PUBLIC_ADDRESS = "203.0.113.9"
    answer = await answer_to(offer)
    found = CANDIDATE.findall(answer)
    assert found
    assert {(address, kind) for address, _, kind in found} == {("203.0.113.9", "host")}


async def test_media_keeps_to_its_ports(serve: Serve) -> None:
    product = serve(RTC_PORT_RANGE="41000-41015")
    async with (
        calling(product.origin, product.keys["good"]) as first,
        calling(product.origin, product.keys["good"]) as second,
    ):
        ports = [int(port) for caller in (first, second) for _, port, _ in CANDIDATE.findall(caller.answer)]
        assert len(ports) >= 2
        assert all(41_000 <= port <= 41_015 for port in ports)
        await second.ask("What is two plus two?")
        await second.wait("response.done")
        await second.wait_quiet()
        assert any(sound.peak > 300 for sound in second.sounds)


class Stun(asyncio.DatagramProtocol):
    """A STUN server that sees everybody at one address."""

    SEEN = "198.51.100.7"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        request = stun.parse_message(data)
        answer = stun.Message(request.message_method, stun.Class.RESPONSE, request.transaction_id)
        answer.attributes["XOR-MAPPED-ADDRESS"] = self.SEEN, address[1]
        self.transport.sendto(bytes(answer), address)


async def answer_to(offer: str) -> str:
    """What this process answers, by the settings."""
    checked = await sdp.read_offer(offer.encode(), allow_private=True)
    transport = WebRtcTransport(RTCPeerConnection(ice_config.configuration(60)))
    try:
        return await transport.accept(checked)
    finally:
        await transport.hang_up()


@pytest.mark.parametrize("ports", ["", "41020-41035"])
async def test_a_stun_server_s_view_is_told_with_a_range_of_ports_as_well(
    settings: Settings, offer: str, ports: str
) -> None:
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Stun, local_addr=("127.0.0.1", 0))
    settings.ICE_SERVERS = [f"stun:127.0.0.1:{transport.get_extra_info('sockname')[1]}"]
    settings.RTC_PORT_RANGE = ports
    found = CANDIDATE.findall(await answer_to(offer))
    transport.close()
    mine = {port for address, port, kind in found if kind == "host" and ":" not in address}
    assert mine
    assert {(address, port) for address, port, kind in found if kind == "srflx"} == {(Stun.SEEN, port) for port in mine}


class Mute(asyncio.DatagramProtocol):
    """A STUN server that does not answer. Who waits for it asks again after 0.5, 1.5, 3.5 seconds, and so on."""

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        self.asked[address[1]] += 1


@pytest.mark.parametrize("ports", ["", "41040-41055"])
async def test_a_stun_server_that_does_not_answer_is_waited_for_a_second(
    settings: Settings, offer: str, ports: str
) -> None:
    transport, mute = await asyncio.get_running_loop().create_datagram_endpoint(Mute, local_addr=("127.0.0.1", 0))
    settings.ICE_SERVERS = [f"stun:127.0.0.1:{transport.get_extra_info('sockname')[1]}"]
    settings.RTC_PORT_RANGE = ports
    found = CANDIDATE.findall(await answer_to(offer))
    transport.close()
    assert {kind for _, _, kind in found} == {"host"}
    assert 1 <= max(mute.asked.values()) <= 3


async def test_a_relay_that_does_not_answer_is_passed_over(settings: Settings, tmp_path: Path, offer: str) -> None:
    settings.RTC_FORCE_RELAY, settings.TURN_SECRET = True, turn_server.SECRET
    with closing(socket.create_server(("127.0.0.1", 0))) as mute, turn_server.relaying(tmp_path) as relay:
        settings.TURN_URLS = [f"turn:127.0.0.1:{mute.getsockname()[1]}?transport=tcp", relay.url]
        assert ice_config.relays.in_order() == settings.TURN_URLS
        found = CANDIDATE.findall(await answer_to(offer))
        assert {kind for _, _, kind in found} == {"relay"}
        assert ice_config.relays.in_order() == settings.TURN_URLS[::-1]  # the next call does not wait


async def test_without_a_way_for_media_an_offer_is_refused_and_operators_are_told(serve: Serve, offer: str) -> None:
    nobody = f"turn:127.0.0.1:{free_port()}?transport=tcp"
    product = serve(RTC_FORCE_RELAY="1", TURN_URLS=nobody, TURN_SECRET="secret")
    status, body, _ = await post_offer(product.origin, product.keys["good"], offer)
    assert status == 503
    assert json.loads(body)["code"] == "ModelUnavailable"
    await product.logged("no way for media leads here: no relay of TURN_URLS")


async def test_without_a_free_port_an_offer_is_refused(settings: Settings, offer: str) -> None:
    with closing(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)) as taken:
        taken.bind(("::", 0))  # of both kinds of addresses
        port = taken.getsockname()[1]
        settings.RTC_PORT_RANGE = f"{port}-{port}"
        with pytest.raises(EngineUnavailable):
            await answer_to(offer)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RTC_PORT_RANGE", "70000-70010"),
        ("RTC_PORT_RANGE", "41020-41000"),
        ("RTC_PORT_RANGE", "1000-1023"),
        ("RTC_PORT_RANGE", "1000-41000"),
        ("RTC_PORT_RANGE", "41000"),
        ("RTC_PORT_RANGE", "65000-65536"),
        ("TURN_URLS", "turn://relay.example.org:3478"),
        ("TURN_URLS", "turn:relay.example.org:3478?transport=tls"),
        ("TURN_URLS", "turn:relay.example.org:34780000"),
        ("TURN_URLS", "turn:relay.example.org,relay.example.org"),
        ("TURN_URLS", "stun:relay.example.org"),
        ("ICE_SERVERS", "stun://stun.example.org"),
        ("ICE_SERVERS", "stun:stun.example.org?transport=udp"),
        ("ICE_SERVERS", "turn:relay.example.org"),
        ("RTC_FORCE_RELAY", "1"),
    ],
)
def test_a_server_does_not_start_with_settings_that_no_call_could_use(variable: str, value: str) -> None:
    done = started_with(
        **{"TURN_SECRET": "secret", "TURN_URLS": "turns:relay.example.org?transport=udp", variable: value}
    )
    assert done.returncode != 0
    assert f"ImproperlyConfigured: {variable}" in done.stderr


def test_a_server_starts_with_settings_that_calls_can_use() -> None:
    done = started_with(
        RTC_PORT_RANGE="1024-65535",
        TURN_SECRET="secret",
        TURN_URLS="turn:198.51.100.7, turn:relay.example.org:3478?transport=tcp,turns:relay.example.org:443",
        ICE_SERVERS="stun:stun.example.org,stun:198.51.100.7:19302,stuns:stun.example.org",
        RTC_FORCE_RELAY="1",
    )
    assert done.returncode == 0, done.stderr


def started_with(**variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBUG": "1", **variables}
    command = [sys.executable, "-c", "import voiceapp.settings"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


async def test_callers_with_addresses_that_are_not_tried_are_found_by_their_checks(serve: Serve) -> None:
    product = serve(RTC_ALLOW_PRIVATE="0")
    async with calling(product.origin, product.keys["good"], has_video=True) as caller:
        await caller.ask("What is two plus two?")
        assert (await caller.wait("response.done"))["response"]["status"] == "completed"


async def test_where_it_is_switched_off_pages_do_not_try_and_offers_are_refused(serve: Serve, offer: str) -> None:
    product = serve(RTC_ENABLED="0")
    async with aiohttp.ClientSession() as session, session.get(f"{product.origin}/voice/config") as answer:
        (voice,) = (model for model in (await answer.json())["models"] if model["name"] == "voice")
    assert voice["transports"] == ["websocket"]
    status, body, _ = await post_offer(product.origin, product.keys["good"], offer)
    assert status == 503
    assert "switched off" in body
