"""Servers, relays, addresses and ports of a call."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time

import aiohttp
import pytest
from aiortc import RTCConfiguration, RTCIceTransportPolicy, RTCPeerConnection
from pytest_django import Settings

from tests.realtime.conftest import Serve
from tests.realtime.webrtc.caller import calling, post_offer
from voiceapp import ice
from voiceapp.realtime import places, sdp
from voiceapp.realtime.transports.webrtc import WebRtcTransport

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
    assert places.configuration(60).iceServers == []
    settings.RTC_FORCE_RELAY = True
    forced = places.configuration(60)
    assert forced.iceTransportPolicy is RTCIceTransportPolicy.RELAY
    assert forced.iceServers is not None
    assert forced.iceServers[0].urls == ["turn:turn.example.org?transport=tcp"]
    assert forced.iceServers[0].username


async def test_the_public_address_takes_the_place_of_the_machine_s(settings: Settings) -> None:
    settings.RTC_PUBLIC_ADDRESS = "203.0.113.9"
    caller = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    caller.addTransceiver("audio")
    caller.createDataChannel("any")
    await caller.setLocalDescription(await caller.createOffer())
    offer = await sdp.read_offer(caller.localDescription.sdp.encode(), allow_private=True)
    transport = WebRtcTransport(RTCPeerConnection(places.configuration(60)))
    answer = await transport.accept(offer)
    await transport.hang_up()
    await caller.close()
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


async def test_callers_with_addresses_that_are_not_tried_are_found_by_their_checks(serve: Serve) -> None:
    product = serve(RTC_ALLOW_PRIVATE="0")
    async with calling(product.origin, product.keys["good"], has_video=True) as caller:
        await caller.ask("What is two plus two?")
        assert (await caller.wait("response.done"))["response"]["status"] == "completed"


async def test_where_it_is_switched_off_pages_do_not_try_and_offers_are_refused(serve: Serve) -> None:
    product = serve(RTC_ENABLED="0")
    async with aiohttp.ClientSession() as session, session.get(f"{product.origin}/voice/config") as answer:
        (voice,) = (model for model in (await answer.json())["models"] if model["name"] == "voice")
    assert voice["transports"] == ["websocket"]
    caller = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    caller.addTransceiver("audio")
    caller.createDataChannel("any")
    await caller.setLocalDescription(await caller.createOffer())
    status, body, _ = await post_offer(product.origin, product.keys["good"], caller.localDescription.sdp)
    await caller.close()
    assert status == 503
    assert "switched off" in body
