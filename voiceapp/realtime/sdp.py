"""Offers and answers as text: what is refused before anything is parsed, and what is changed on the way out."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Iterator

from aiortc.sdp import SessionDescription

from voiceapp.errors import InvalidParameter

MAX_BYTES = 64 * 1024
MAX_CANDIDATES = 50
"""Pairing candidates costs the square of their number, on the event loop."""
MAX_MEDIA = 4
MAX_LINES = 1000
PARSE_S = 2.0
MALFORMED = (AssertionError, ValueError, KeyError, IndexError, StopIteration, AttributeError, TypeError, RuntimeError)
"""What aiortc raises on broken descriptions; RuntimeError is a StopIteration that left a coroutine."""

DYNAMIC_TYPES = frozenset((*range(35, 64), *range(96, 128)))
"""Payload types that an offer may give a meaning to (RFC 5761, 4; RFC 3551, 3)."""

_CANDIDATE = re.compile(r"a=candidate:(?P<fields>.*)")
_OPUS = re.compile(r"a=rtpmap:(\d+) opus/48000/2", re.IGNORECASE)
_REDUNDANT = re.compile(r"a=rtpmap:(\d{1,3}) red/48000/2\s*$", re.IGNORECASE | re.MULTILINE)


async def read_offer(body: bytes, *, allow_private: bool) -> str:
    """A checked offer, without the candidates that this server must not try.

    Dropped are names (`.local` would be looked up by multicast), TCP, and, unless `allow_private`, addresses that are
    not public: a caller could have this server probe its own network. A caller behind them is found anyway, by the
    checks that come from there.

    Raises:
        InvalidParameter: too large, too much in it, or nothing that could be answered.
    """
    if len(body) > MAX_BYTES:
        raise _refused(f"it is larger than {MAX_BYTES} bytes")
    try:
        lines = [line.rstrip() for line in body.decode("utf-8").splitlines()]
    except UnicodeDecodeError:
        raise _refused("it is not text") from None
    lines = [line for line in lines if line]
    if not lines or lines[0] != "v=0":
        raise _refused("it does not begin with v=0")
    if len(lines) > MAX_LINES or sum(line.startswith("a=candidate:") for line in lines) > MAX_CANDIDATES:
        raise _refused(f"it has more than {MAX_LINES} lines or {MAX_CANDIDATES} candidates")
    if sum(line.startswith("m=") for line in lines) > MAX_MEDIA:
        raise _refused(f"it has more than {MAX_MEDIA} media sections")
    text = "".join(f"{line}\r\n" for line in _without_bad_candidates(lines, allow_private))
    try:
        async with asyncio.timeout(PARSE_S):
            description = await asyncio.to_thread(_parse, text)
    except TimeoutError:
        raise _refused("it takes too long to read") from None
    _require_what_is_needed(description)
    return text


def redundant_type(offer: str) -> int | None:
    """The payload type of audio with copies of the packet before (RFC 2198), if the caller knows such."""
    found = _REDUNDANT.search(offer)
    return int(found[1]) if found and int(found[1]) in DYNAMIC_TYPES else None


def finish_answer(text: str, *, public_address: str, redundant: int | None = None) -> str:
    """An answer as it goes out: asks for copies against loss, and names the address that the world sees.

    `redundant`, a payload type, comes first among those of the audio: browsers then send it. `public_address` takes the
    place of the host candidates' addresses where a router maps it onto this machine port by port; empty changes
    nothing.
    """
    lines: list[str] = []
    for line in text.splitlines():
        if public_address and (candidate := _CANDIDATE.match(line)):
            line = _published(candidate["fields"], public_address)
        if redundant is not None and line.startswith("m=audio "):
            kind, port, profile, types = line.split(" ", 3)
            line = f"{kind} {port} {profile} {redundant} {types}"
        if line and line not in lines[-1:]:
            lines.append(line)
        if opus := _OPUS.match(line):
            lines.append(f"a=fmtp:{opus[1]} minptime=10;useinbandfec=1")
            if redundant is not None:
                lines.append(f"a=rtpmap:{redundant} red/48000/2")
                lines.append(f"a=fmtp:{redundant} {opus[1]}/{opus[1]}")
    return "".join(f"{line}\r\n" for line in lines)


def _parse(text: str) -> SessionDescription:
    try:
        return SessionDescription.parse(text)
    except MALFORMED as error:
        raise _refused("it cannot be read") from error


def _require_what_is_needed(description: SessionDescription) -> None:
    kinds = [media.kind for media in description.media]
    if kinds.count("audio") != 1 or kinds.count("application") != 1:
        raise _refused("it needs one audio track and one data channel")
    mids = [media.rtp.muxId for media in description.media]
    if "" in mids or len(set(mids)) < len(mids):
        raise _refused("its media sections need names of their own (a=mid)")
    if any(set(group.items) - set(mids) for group in description.group if group.semantic == "BUNDLE"):
        raise _refused("it bundles media sections that are not there")
    for media in description.media:
        if media.dtls is None or not media.dtls.fingerprints:
            raise _refused("a media section has no fingerprint")
        if media.ice is None or not media.ice.usernameFragment or not media.ice.password:
            raise _refused("a media section has no ICE credentials")
        if media.kind == "audio" and not any(codec.mimeType.lower() == "audio/opus" for codec in media.rtp.codecs):
            raise _refused("its audio is not Opus")


def _without_bad_candidates(lines: list[str], allow_private: bool) -> Iterator[str]:
    for line in lines:
        candidate = _CANDIDATE.match(line)
        if candidate is None or _is_tried(candidate["fields"].split(), allow_private):
            yield line


def _is_tried(fields: list[str], allow_private: bool) -> bool:
    """`fields` of RFC 8839, 5.1: foundation, component, transport, priority, address, port, `typ`, type, …"""
    if len(fields) < 8 or fields[2].lower() != "udp":
        return False
    try:
        address = ipaddress.ip_address(fields[4])
        numbers = [int(fields[place]) for place in (1, 3, 5)]
    except ValueError:
        return False
    if min(numbers) < 0 or not 0 < numbers[2] < 65536 or address.is_multicast or address.is_unspecified:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return allow_private or (mapped or address).is_global


def _published(fields: str, public_address: str) -> str:
    parts = fields.split()
    if "host" in parts and ipaddress.ip_address(parts[4]).version == ipaddress.ip_address(public_address).version:
        parts[4] = public_address
    elif "host" in parts:
        return ""
    return f"a=candidate:{' '.join(parts)}"


def _refused(why: str) -> InvalidParameter:
    return InvalidParameter(f"The offer is refused: {why}.")
