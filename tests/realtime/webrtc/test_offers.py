"""Offers over HTTP: who may make one, and what becomes of bad ones."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import re
import time

import aiohttp
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection

from tests.realtime.product import Product
from tests.realtime.webrtc.caller import post_offer
from voiceapp.errors import InvalidParameter
from voiceapp.realtime.transports.webrtc import WebRtcTransport
from voiceapp.realtime.webrtc import sdp

MUTATIONS = int(os.environ.get("SDP_MUTATIONS", "600"))
"""20,000 take half a minute: `make soak`."""
STALL_S = 0.1


def refusal(status: int, body: str) -> tuple[int, str]:
    """Status and code of a refusal in the house's shape."""
    told = json.loads(body)
    assert told.keys() >= {"code", "message", "request_id"}
    return status, told["code"]


async def test_an_offer_of_another_content_type_is_refused_in_json(product: Product, offer: str) -> None:
    for content_type in ("application/json", "text/plain"):
        asked = {"Content-Type": content_type}
        status, body, headers = await post_offer(product.origin, product.keys["good"], offer, **asked)
        assert refusal(status, body) == (415, "InvalidParameter")
        assert headers["Content-Type"] == "application/json"


async def test_a_content_type_with_parameters_is_understood(product: Product, offer: str) -> None:
    asked = {"Content-Type": "application/sdp; charset=utf-8"}
    status, body, headers = await post_offer(product.origin, product.keys["good"], offer, **asked)
    assert status == 200, body
    assert headers["Content-Type"] == "application/sdp"
    assert "a=candidate:" in body
    assert "useinbandfec=1" in body
    assert "opus/48000/2" in body


@pytest.mark.parametrize("path", ["/api/v1/webrtc/realtime?model=voice", "/voice/webrtc"])
async def test_only_post_is_served(product: Product, path: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{product.origin}{path}") as answer:
        assert refusal(answer.status, await answer.text())[0] == 405
        assert answer.headers["Allow"] == "POST"


@pytest.mark.parametrize("content_type", ["multipart/form-data", "multipart/form-data; boundary=x", "text/plain", ""])
async def test_what_comes_to_the_page_s_door_as_something_else_is_refused_in_json(
    product: Product, content_type: str
) -> None:
    headers = {"Content-Type": content_type, "Origin": product.origin}
    status, body, _ = await post_offer(product.origin, None, "x", path="/voice/webrtc", **headers)
    assert refusal(status, body) == (415, "InvalidParameter")


CANDIDATE = "a=candidate:1 1 udp 2130706431 {} {} typ host"


def with_lines(offer: str, lines: list[str]) -> str:
    return offer.rstrip() + "\r\n" + "\r\n".join(lines) + "\r\n"


def bad_offers(offer: str) -> dict[str, str | bytes]:
    """By what is wrong with it, an offer that is refused."""
    lines = offer.splitlines()
    return {
        "empty": "",
        "rubbish": "rubbish",
        "binary": bytes(range(256)),
        "html": "<html></html>",
        "large": with_lines(offer, ["a=x:" + "y" * sdp.MAX_BYTES]),
        "candidates": with_lines(offer, [CANDIDATE.format("8.8.8.8", port) for port in range(1000, 1060)]),
        "media": offer + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" * 4,
        "lines": with_lines(offer, ["a=x"] * 1100),
        "no audio": offer.replace("m=audio", "m=text"),
        "no channel": offer[: offer.index("m=application")],
        "no opus": re.sub(r"opus/48000/2", "speex/16000", offer),
        "no fingerprint": "\r\n".join(line for line in lines if "fingerprint" not in line) + "\r\n",
        "no password": "\r\n".join(line for line in lines if "ice-pwd" not in line) + "\r\n",
        "no mid": "\r\n".join(line for line in lines if "a=mid" not in line) + "\r\n",
        "an answer": offer.replace("a=setup:actpass", "a=setup:nonsense"),
        "broken port": re.sub(r"m=audio \d+", "m=audio x", offer),
        "broken candidate": with_lines(offer, ["a=candidate:1 1 udp x 8.8.8.8 y typ host", "a=ssrc:x cname:y"]),
        "broken rtpmap": offer.replace("a=rtpmap:96 ", "a=rtpmap:x "),
        "broken fmtp": offer.replace("a=rtpmap:96", "a=rtpmap:"),
        "broken sctp": re.sub(r"a=sctp-port:\d+", "a=sctp-port:x", offer),
        "no lines": "\r\n" * 50,
        "broken fingerprint": re.sub(r"a=fingerprint:sha-256 .*", "a=fingerprint:", offer),
    }


async def test_a_bad_offer_is_a_bad_request(product: Product, offer: str) -> None:
    for bad, changed in bad_offers(offer).items():
        status, body, _ = await post_offer(product.origin, product.keys["good"], changed)
        assert refusal(status, body) == (400, "InvalidParameter"), bad


async def test_no_mutation_of_an_offer_is_more_than_a_bad_request(offer: str) -> None:
    chance = random.Random(11)
    stalls: list[float] = []

    async def watch() -> None:
        """How long the loop kept everybody else waiting, in its own time: a busy machine is not its fault."""
        while True:
            begun = time.thread_time()
            await asyncio.sleep(0.005)
            stalls.append(time.thread_time() - begun)

    gc.collect()
    gc.freeze()  # the collector's look at all of pytest takes longer than any offer
    watching = asyncio.create_task(watch())
    fine = 0
    for _ in range(MUTATIONS):
        try:
            checked = await sdp.read_offer(mutated(offer, chance).encode(), allow_private=True)
        except InvalidParameter:
            continue
        transport = WebRtcTransport(RTCPeerConnection(RTCConfiguration(iceServers=[])))
        try:
            answer = await transport.accept(checked)
            assert answer.startswith("v=0")
            fine += 1
        except InvalidParameter:
            pass
        finally:
            await transport.hang_up()
    watching.cancel()
    gc.unfreeze()
    print(f"{MUTATIONS} mutations, {fine} answered; the loop stood still for at most {max(stalls) * 1000:.0f} ms")
    assert fine > MUTATIONS / 20  # the mutations are not all nonsense
    assert max(stalls) < STALL_S


def mutated(offer: str, chance: random.Random) -> str:
    """One to three lines dropped, doubled, moved or damaged."""
    lines = offer.splitlines()
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        line = lines[at]
        kind = chance.randrange(5)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(chance.randrange(len(lines)), line)
        elif kind == 2:
            lines[at] = line[: chance.randrange(len(line) + 1)]
        elif kind == 3 and line:
            place = chance.randrange(len(line))
            lines[at] = line[:place] + chance.choice("\0 :/=-9aZ\u00e9") + line[place + 1 :]
        else:
            lines[at] = line.replace(" ", chance.choice(["", "  ", ":", " 0 "]), 1)
    return "\r\n".join(lines) + "\r\n"


@pytest.mark.parametrize(
    ("address", "is_kept"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        ("10.0.0.1", False),
        ("192.168.1.1", False),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("::1", False),
        ("::ffff:10.0.0.1", False),
        ("fd00::1", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::c0a8:101", False),
        ("::7f00:1", False),
        ("fec0::1", False),
        ("2002:7f00:1::1", False),
        ("2002:c0a8:101::1", False),
        ("168.63.129.16", False),
        ("192.88.99.1", False),
        ("198.18.0.1", False),
        ("b1f5c7aa-0000.local", False),
        ("example.org", False),
    ],
)
async def test_only_public_addresses_are_tried(offer: str, address: str, is_kept: bool) -> None:
    bare = "\r\n".join(line for line in offer.splitlines() if "candidate" not in line)
    checked = await sdp.read_offer(with_lines(bare, [CANDIDATE.format(address, 4000)]).encode(), allow_private=False)
    assert (f" {address} 4000 " in checked) == is_kept


async def test_names_and_tcp_are_never_tried(offer: str) -> None:
    lines = [
        CANDIDATE.format("x.local", 4000),
        CANDIDATE.format("8.8.8.8", 9).replace(" udp ", " tcp "),
        CANDIDATE.format("10.1.2.3", 4000),
    ]
    checked = await sdp.read_offer(with_lines(offer, lines).encode(), allow_private=True)
    assert "x.local" not in checked
    assert " tcp " not in checked
    assert "10.1.2.3" in checked


def test_the_answer_names_the_public_address() -> None:
    answer = "v=0\r\na=candidate:1 1 udp 5 10.0.0.4 4000 typ host\r\na=candidate:2 1 udp 5 fd00::2 4000 typ host\r\n"
    assert sdp.finish_answer(answer, "", public_address="203.0.113.9") == (
        "v=0\r\na=candidate:1 1 udp 5 203.0.113.9 4000 typ host\r\n"
    )
    assert sdp.finish_answer(answer, "", public_address="") == answer


def test_copies_against_loss_are_preferred_if_the_caller_knows_them() -> None:
    offer = "a=rtpmap:63 red/48000/2\r\na=rtpmap:111 opus/48000/2\r\na=rtpmap:98 red/90000\r\n"
    assert sdp.redundant_type(offer) == 63
    assert sdp.redundant_type(offer.replace("63", "9")) is None
    assert sdp.redundant_type("a=rtpmap:98 red/90000\r\n") is None
    answer = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\n"
    offer = "m=audio 9 UDP/TLS/RTP/SAVPF 63 111\r\n"
    assert sdp.finish_answer(answer, offer, public_address="", redundant=63) == (
        "m=audio 9 UDP/TLS/RTP/SAVPF 63 111\r\na=rtpmap:111 opus/48000/2\r\n"
        "a=fmtp:111 minptime=10;useinbandfec=1\r\na=rtpmap:63 red/48000/2\r\na=fmtp:63 111/111\r\n"
    )
