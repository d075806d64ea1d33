"""Offers as browsers and other programs shape them: each is answered, and the channel opens.

Both ends are in this process, and no candidate of the caller's is one that may be tried unless a test says so: they
find each other by the checks that come from the caller, as a server on the Internet and a browser behind a router do.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from voiceapp.errors import InvalidParameter
from voiceapp.realtime.transports.webrtc import WebRtcTransport
from voiceapp.realtime.webrtc import ice_config, sdp

Change = Callable[[str], str]

OPENS_S = 10.0
TRANSPORT = re.compile(r"a=(?:ice-ufrag|ice-pwd|ice-options|fingerprint|setup|candidate|end-of-candidates)\b.*\r\n")
OFF = "m=video 0 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=inactive\r\na=mid:off\r\na=rtpmap:96 VP8/90000\r\n"


def sections(text: str) -> list[str]:
    """What stands before the media sections, and those."""
    return re.split(r"(?m)^(?=m=)", text)


def as_it_is(text: str) -> str:
    return text


def without_candidates(offer: str) -> str:
    return re.sub(r"a=(candidate|end-of-candidates).*\r\n", "", offer)


def with_a_name(offer: str) -> str:
    return re.sub(r"(a=candidate:.* udp \d+) \S+ (\d+)", r"\1 b1f5c7aa-0000.local \2", offer)


def with_private_addresses(offer: str) -> str:
    return re.sub(r"(a=candidate:.* udp \d+) \S+ (\d+)", r"\1 192.168.77.1 \2", offer)


def bundle_only(offer: str) -> str:
    """RFC 8829, 5.2.1: a browser with the bundle policy max-bundle; only the first section has a transport."""
    head, first, *others = sections(offer)
    others = [re.sub(r"^(m=\w+) \d+", r"\1 0", TRANSPORT.sub("", other)) + "a=bundle-only\r\n" for other in others]
    return head + first + "".join(others)


def with_transports_of_their_own(offer: str) -> str:
    """Those of the first section count for all that are bundled with it (RFC 9143, 7.1.3)."""
    head, first, *others = sections(offer)
    return head + first + "".join(re.sub(r"(a=ice-ufrag:).*", r"\1else", other) for other in others)


def with_transport_for_all(offer: str) -> str:
    head, *media = sections(offer)
    found = [line for line in TRANSPORT.findall(media[0]) if "candid" not in line]
    assert found
    return head + "".join(found) + "".join(re.sub(r"a=(ice-|fingerprint|setup).*\r\n", "", one) for one in media)


def unbundled(offer: str) -> str:
    return re.sub(r"a=group:BUNDLE.*\r\n", "", offer)


def with_video_by_itself(offer: str) -> str:
    return offer.replace("BUNDLE 0 1 2", "BUNDLE 0 2")


def in_vp9(offer: str) -> str:
    head, *media = sections(offer)
    for place, one in enumerate(media):
        if one.startswith("m=video"):
            only = re.sub(r"^(m=video \d+ \S+) .*", r"\1 98", re.sub(r"a=(rtpmap|fmtp|rtcp-fb):.*\r\n", "", one))
            media[place] = only + "a=rtpmap:98 VP9/90000\r\na=fmtp:98 profile-id=0\r\n"
    return head + "".join(media)


def in_vp8(answer: str) -> str:
    """The caller here knows nothing else."""
    return answer.replace("VP9/90000", "VP8/90000")


def with_video_off(offer: str) -> str:
    head, *media = sections(offer)
    return head + media[0] + OFF + "".join(media[1:])


def without_rejected(answer: str) -> str:
    """The caller here has not offered this section itself."""
    head, *media = sections(answer)
    return head + "".join(one for one in media if not re.match(r"m=\w+ 0 ", one))


def with_a_dead_end(answer: str) -> str:
    """The caller here reads nothing from port 0, and tries for what it offered whatever transport there is."""
    head, *media = sections(answer)
    transport = "".join(line for line in TRANSPORT.findall(media[0]) if "a=candidate" not in line)
    video = f"{transport}a=rtcp-mux\r\na=rtpmap:97 VP8/90000\r\n"
    return head + "".join(one + video if re.match(r"m=\w+ 0 ", one) else one for one in media)


@dataclass(frozen=True)
class Shape:
    kinds: tuple[str, ...] = ("audio", "application")
    """The media sections of the offer, in order."""
    change: Change = as_it_is
    """On the way to the server."""
    change_back: Change = as_it_is
    answered: tuple[str, ...] = ()
    """Beginnings of the answer's media lines, where they are not those of the offer."""
    bundled: str | None = None
    """The answer's group, where it is not all of the offer; empty if there is to be none."""


AUDIO, VIDEO, CHANNEL = "audio", "video", "application"
SHAPES = {
    "only private addresses": Shape(change=with_private_addresses),
    "only a name": Shape(change=with_a_name),
    "no candidates": Shape(change=without_candidates),
    "channel first": Shape(kinds=(CHANNEL, AUDIO)),
    "bundle-only channel": Shape(change=bundle_only),
    "bundle-only audio": Shape(kinds=(CHANNEL, AUDIO), change=bundle_only),
    "named twice": Shape(change=lambda offer: offer.replace("BUNDLE 0", "BUNDLE 0 0")),
    "transports of their own": Shape(change=with_transports_of_their_own),
    "transport for all": Shape(change=with_transport_for_all),
    "not bundled": Shape(change=unbundled, bundled=""),
    "video first": Shape(kinds=(VIDEO, AUDIO, CHANNEL)),
    "video second": Shape(kinds=(AUDIO, VIDEO, CHANNEL)),
    "video last": Shape(kinds=(CHANNEL, AUDIO, VIDEO)),
    "camera and screen": Shape(kinds=(VIDEO, AUDIO, VIDEO, CHANNEL)),
    "video leads a bundle-only audio": Shape(kinds=(VIDEO, AUDIO, CHANNEL), change=bundle_only),
    "bundle-only video": Shape(kinds=(AUDIO, VIDEO, CHANNEL), change=bundle_only),
    "another video codec": Shape(kinds=(AUDIO, VIDEO, CHANNEL), change=in_vp9, change_back=in_vp8),
    "another video codec first": Shape(kinds=(VIDEO, AUDIO, CHANNEL), change=in_vp9, change_back=in_vp8),
    "video switched off": Shape(
        change=with_video_off,
        change_back=without_rejected,
        answered=("m=audio", "m=video 0 UDP/TLS/RTP/SAVPF 96", "m=application"),
        bundled="0 1",
    ),
    "video by itself": Shape(
        kinds=(AUDIO, VIDEO, CHANNEL),
        change=with_video_by_itself,
        change_back=with_a_dead_end,
        answered=("m=audio", "m=video 0 ", "m=application"),
        bundled="0 2",
    ),
}


async def offering(kinds: tuple[str, ...]) -> tuple[RTCPeerConnection, asyncio.Event, str]:
    caller = RTCPeerConnection(RTCConfiguration(iceServers=[], alwaysNegotiateDataChannels=kinds[0] == CHANNEL))
    opened = asyncio.Event()
    for kind in kinds:
        if kind != CHANNEL:
            caller.addTransceiver(kind)
    if kinds[0] != CHANNEL:
        caller.createDataChannel("any").on("open", opened.set)
    await caller.setLocalDescription(await caller.createOffer())
    if kinds[0] == CHANNEL:
        caller.createDataChannel("any").on("open", opened.set)
    return caller, opened, caller.localDescription.sdp


@pytest.mark.parametrize("name", SHAPES)
async def test_it_is_answered_and_the_channel_opens(name: str) -> None:
    shape = SHAPES[name]
    caller, opened, offer = await offering(shape.kinds)
    transport = WebRtcTransport(RTCPeerConnection(ice_config.configuration(60)))
    try:
        changed = shape.change(offer)
        checked = await sdp.read_offer(changed.encode(), allow_private=False)
        assert "a=candidate" not in checked
        answer = await transport.accept(checked)
        lines = [line for line in answer.splitlines() if line.startswith("m=")]
        expected = shape.answered or tuple(f"m={kind} " for kind in shape.kinds)
        assert all(line.startswith(start) for line, start in zip(lines, expected, strict=True)), lines
        assert re.findall(r"a=mid:(.*)", answer) == re.findall(r"a=mid:(.*)", changed)
        names = shape.bundled if shape.bundled is not None else " ".join(str(place) for place in range(len(lines)))
        assert re.findall(r"a=group:BUNDLE (.*)\r", answer) == ([names] if names else [])
        assert all("a=inactive" in one for one in sections(answer) if one.startswith("m=video"))
        await caller.setRemoteDescription(RTCSessionDescription(shape.change_back(answer), "answer"))
        async with asyncio.timeout(OPENS_S):
            await opened.wait()
    finally:
        await transport.hang_up()
        await caller.close()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda offer: re.sub(r"a=fingerprint:sha-\d+", "a=fingerprint:md5", offer), "fingerprint"),
        (lambda offer: re.sub(r"a=fingerprint:sha-\d+", "a=fingerprint:foo", offer), "fingerprint"),
        (lambda offer: offer.replace("a=setup:actpass\r\n", ""), "a=setup"),
        (lambda offer: offer.replace("m=audio 9", "m=audio 0"), "one audio track"),
        (lambda offer: re.sub(r"m=application \d+", "m=application 0", offer), "one data channel"),
        (lambda offer: offer.replace("BUNDLE 0 1", "BUNDLE 0 1 2"), "not there"),
        (lambda offer: offer + OFF.replace("a=mid:off", "a=mid:0"), "names of their own"),
        (lambda offer: offer.replace("m=audio", "m=audio x"), "cannot be read"),
        (lambda offer: unbundled(bundle_only(offer)), "fingerprint"),
    ],
    ids=["md5", "foo", "no role", "audio off", "channel off", "strange bundle", "same name", "no port", "no transport"],
)
async def test_it_is_refused_with_a_reason(change: Change, reason: str) -> None:
    caller, _, offer = await offering((AUDIO, CHANNEL))
    await caller.close()
    changed = change(re.sub(r"m=audio \d+", "m=audio 9", offer))
    with pytest.raises(InvalidParameter, match=reason):
        await sdp.read_offer(changed.encode(), allow_private=False)
