"""Offers and answers as text: what is refused before anything is parsed, and what is changed on the way out."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from aiortc.rtcdtlstransport import X509_DIGEST_ALGORITHMS
from aiortc.sdp import SessionDescription

from voiceapp.errors import InvalidParameter
from voiceapp.outbound.addresses import allows

MAX_BYTES = 64 * 1024
MAX_CANDIDATES = 50
"""Pairing candidates costs the square of their number, on the event loop."""
MAX_MEDIA = 4
MAX_LINES = 1000
PARSE_S = 2.0
MALFORMED = (AssertionError, ValueError, KeyError, IndexError, StopIteration, AttributeError, TypeError, RuntimeError)
"""Errors that aiortc raises for broken descriptions; RuntimeError is a StopIteration that left a coroutine."""

DYNAMIC_TYPES = frozenset((*range(35, 64), *range(96, 128)))
"""Payload types that an offer may give a meaning to (RFC 5761, 4; RFC 3551, 3)."""

_TRANSPORT = (
    "a=ice-ufrag:", "a=ice-pwd:", "a=ice-options:", "a=candidate:", "a=fingerprint:", "a=setup:", "a=end-of-candidates",
)  # fmt: skip
_MEDIA = re.compile(r"m=[^ ]+ [0-9]+ [^ ]+ [^ ].*")
_BUNDLE = "a=group:BUNDLE"
_CANDIDATE = re.compile(r"a=candidate:(?P<fields>.*)")
_OPUS = re.compile(r"a=rtpmap:(\d+) opus/48000/2", re.IGNORECASE)
_REDUNDANT = re.compile(r"a=rtpmap:(\d{1,3}) red/48000/2\s*$", re.IGNORECASE | re.MULTILINE)


class _Section:
    """A media section of an offer: its lines, and what becomes of it."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.kind, self.port = (*lines[0][2:].split(" "), "", "")[:2]
        self.mid = next((line[6:] for line in reversed(lines) if line.startswith("a=mid:")), "")
        is_off = self.port == "0" and "a=bundle-only" not in lines
        self.is_used = self.kind in ("audio", "application") and not is_off
        self.is_inactive = self.kind == "video" and not is_off
        """Agreed upon if it is bundled, which costs nothing; an answer must not refuse what leads the bundle."""

    def transport(self) -> list[str]:
        return [line for line in self.lines if line.startswith(_TRANSPORT)]


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
    text = _text(_without_bad_candidates(lines, allow_private))
    _require_names(text)
    try:
        async with asyncio.timeout(PARSE_S):
            description = await asyncio.to_thread(_parse, sound_and_channel(text))
    except TimeoutError:
        raise _refused("it takes too long to read") from None
    _require_what_is_needed(description)
    return text


def sound_and_channel(offer: str) -> str:
    """Return the part of an offer that aiortc gets: the audio and the channel.

    Other sections would be negotiated, and an offer refused for a codec that is not needed. Bundled sections get the
    transport of the one that leads the bundle, which may be the only one that has any (RFC 9143, 7.1). That no more
    candidates follow is left out: aioice gives up when those are tried, and a caller who has none that may be tried is
    found by the checks that come from there.
    """
    head, sections = _split(offer.splitlines())
    bundle = _bundle(head)
    leader = next((one for mid in bundle for one in sections if one.mid == mid and one.port != "0"), None)
    used = [one for one in sections if one.is_used]
    lines = [line for line in head if not line.startswith(_BUNDLE)]
    if bundled := [mid for mid in bundle if any(one.mid == mid for one in used)]:
        lines.append(f"{_BUNDLE} {' '.join(bundled)}")
    for section in used:
        if leader is not None and section.mid in bundle:
            lines += [line for line in section.lines if not line.startswith(_TRANSPORT)]
            lines += leader.transport()
        else:
            lines += section.lines
    return _text(line for line in lines if line != "a=end-of-candidates")


def redundant_type(offer: str) -> int | None:
    """The payload type of audio with copies of the packet before (RFC 2198), if the caller knows such."""
    found = _REDUNDANT.search(offer)
    return int(found[1]) if found and int(found[1]) in DYNAMIC_TYPES else None


def finish_answer(text: str, offer: str, *, public_address: str, redundant: int | None = None) -> str:
    """An answer as it goes out: to all sections of the offer, asks for copies against loss, names the address that the
    world sees.

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
    return _text(_with_all_sections(lines, offer))


def _parse(text: str) -> SessionDescription:
    try:
        return SessionDescription.parse(text)
    except MALFORMED as error:
        raise _refused("it cannot be read") from error


def _split(lines: Sequence[str]) -> tuple[list[str], list[_Section]]:
    """Split a description into the lines before the first media section, and the sections."""
    starts = [place for place, line in enumerate(lines) if line.startswith("m=")] + [len(lines)]
    return list(lines[: starts[0]]), [_Section(list(lines[start:end])) for start, end in pairwise(starts)]


def _bundle(head: Sequence[str]) -> list[str]:
    """Names of the sections that share the transport of the first of them: of one group, others stay apart."""
    return list(dict.fromkeys(next((line.split()[1:] for line in head if line.startswith(f"{_BUNDLE} ")), [])))


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\r\n" for line in lines)


def _with_all_sections(answer: Sequence[str], offer: str) -> Iterator[str]:
    """An answer to audio and channel, with the other sections of the offer in their places."""
    offered_head, offered = _split(offer.splitlines())
    head, answered = _split(answer)
    bundle = _bundle(offered_head)
    shared = next((one.transport() for one in answered if one.mid in bundle), None)
    agreed = {one.mid for one in offered if one.is_used or (one.is_inactive and shared is not None)}
    for line in head:
        if not line.startswith(_BUNDLE):
            yield line
        elif bundled := [mid for mid in bundle if mid in agreed]:
            yield f"{_BUNDLE} {' '.join(bundled)}"
    rest = iter(answered)
    for section in offered:
        if section.is_used:
            yield from next(rest).lines
        elif section.is_inactive and section.mid in bundle and shared is not None:
            yield from _inactive(section, shared)
        else:
            yield from _rejected(section)


def _inactive(section: _Section, transport: Sequence[str]) -> Iterator[str]:
    """Agrees on the format that is offered first, and to send nothing."""
    kind, _, profile, payload_type, *_ = section.lines[0].split(" ")
    yield f"{kind} 9 {profile} {payload_type}"
    yield "c=IN IP4 0.0.0.0"
    yield "a=inactive"
    yield f"a=mid:{section.mid}"
    format_lines = (f"a=rtpmap:{payload_type} ", f"a=fmtp:{payload_type} ")
    yield from (line for line in section.lines if line == "a=rtcp-mux" or line.startswith(format_lines))
    yield from transport


def _rejected(section: _Section) -> Iterator[str]:
    kind, _, rest = section.lines[0].split(" ", 2)
    yield f"{kind} 0 {rest}"
    yield "c=IN IP4 0.0.0.0"
    yield "a=inactive"
    if section.mid:
        yield f"a=mid:{section.mid}"


def _require_names(text: str) -> None:
    head, sections = _split(text.splitlines())
    if any(not _MEDIA.fullmatch(one.lines[0]) for one in sections):
        raise _refused("it cannot be read")
    mids = [one.mid for one in sections if one.mid or one.is_used]
    if "" in mids or len(set(mids)) < len(mids):
        raise _refused("its media sections need names of their own (a=mid)")
    if set(_bundle(head)) - set(mids):
        raise _refused("it bundles media sections that are not there")


def _require_what_is_needed(description: SessionDescription) -> None:
    kinds = [media.kind for media in description.media]
    if kinds.count("audio") != 1 or kinds.count("application") != 1:
        raise _refused("it needs one audio track and one data channel")
    for media in description.media:
        if media.dtls is None or not any(
            fingerprint.algorithm.lower() in X509_DIGEST_ALGORITHMS for fingerprint in media.dtls.fingerprints
        ):
            raise _refused("a media section has no a=setup, or no fingerprint that is understood, such as by sha-256")
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
    return allow_private or allows(fields[4])


def _published(fields: str, public_address: str) -> str:
    parts = fields.split()
    if "host" in parts and ipaddress.ip_address(parts[4]).version == ipaddress.ip_address(public_address).version:
        parts[4] = public_address
    elif "host" in parts:
        return ""
    return f"a=candidate:{' '.join(parts)}"


def _refused(why: str) -> InvalidParameter:
    return InvalidParameter(f"The offer is refused: {why}.")
