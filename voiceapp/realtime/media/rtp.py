"""RTP packets and their order (RFC 3550); no I/O."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

HEADER = struct.Struct("!BBHII")
VERSION = 0x80
SEQUENCES = 1 << 16
TIMESTAMPS = 1 << 32
PATIENCE_PACKETS = 3
"""That many later packets wait for a missing one: 60 ms at 20 ms each, about the jitter of a bad wireless network."""
ASKED_PATIENCE_PACKETS = 8
"""Patience where callers send again what is asked for: 160 ms, a round trip and another one if the first is lost."""
ASK_PACKETS = (2, 5)
"""So many later packets are there when a missing one is asked for: the first may only be out of order."""
IGNORED_REQUESTS = 4
"""So many places in a row asked for in vain: the caller does not send again."""
MAX_COPY_TICKS, MAX_COPY_BYTES = (1 << 14) - 1, (1 << 10) - 1
"""Limits of the header of a copy (RFC 2198, 3)."""
JUMP_PACKETS = 100
"""A gap this long is another stream, not a loss."""


@dataclass(frozen=True, slots=True)
class Packet:
    """Used fields of an RTP packet."""

    payload_type: int
    sequence: int
    timestamp: int
    """In units of the codec's clock: 48 kHz for Opus, whatever is in it."""
    ssrc: int
    payload: bytes
    copies: tuple[tuple[int, bytes], ...] = ()
    """The packets right before this one, newest first: by how much their timestamps are lower, and their payloads."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The place of a packet that did not come in time."""

    following: bytes | None
    """The payload right behind it, which may hold a copy of what was lost."""


def parse(data: bytes) -> Packet:
    """Read a decrypted packet.

    Raises:
        ValueError: it is cut short, or of another version.
    """
    if len(data) < HEADER.size or data[0] & 0xC0 != VERSION:
        raise ValueError("not an RTP packet")
    first, second, sequence, timestamp, ssrc = HEADER.unpack_from(data)
    start, end = HEADER.size + 4 * (first & 0x0F), len(data)
    if first & 0x10:  # header extension
        if len(data) < start + 4:
            raise ValueError("RTP header extension is cut short")
        start += 4 + 4 * int.from_bytes(data[start + 2 : start + 4])
    if first & 0x20:  # padding
        end -= data[-1]
    if start > end:
        raise ValueError("RTP header is cut short")
    return Packet(second & 0x7F, sequence, timestamp, ssrc, data[start:end])


def build(payload_type: int, sequence: int, timestamp: int, ssrc: int, payload: bytes, *, marker: bool) -> bytes:
    """The bytes of a packet; the marker says that speech begins after silence (RFC 3551, 4.1)."""
    return HEADER.pack(VERSION, marker << 7 | payload_type, sequence, timestamp, ssrc) + payload


def with_copies(packet: Packet, payload_type: int) -> Packet:
    """The packet of type `payload_type` that a packet of redundant audio data (RFC 2198) holds.

    Raises:
        ValueError: it is cut short, or holds another type.
    """
    data, at = packet.payload, 0
    headers: list[int] = []
    while at + 4 <= len(data) and data[at] & 0x80:
        headers.append(int.from_bytes(data[at : at + 4]))
        at += 4
    lengths = [header & 0x3FF for header in headers]
    if at >= len(data) or data[at] != payload_type or at + 1 + sum(lengths) > len(data):
        raise ValueError("not redundant audio data")
    at += 1
    copies: list[tuple[int, bytes]] = []
    for header, length in zip(headers, lengths, strict=True):
        copies.insert(0, (header >> 10 & 0x3FFF, data[at : at + length]))
        at += length
    return replace(packet, payload_type=payload_type, payload=data[at:], copies=tuple(copies))


def redundant(payload_type: int, payload: bytes, previous: bytes, ticks: int) -> bytes:
    """The payload of redundant audio data: `payload`, and a copy of what was sent `ticks` of the clock before."""
    header = (0x80 | payload_type) << 24 | ticks << 10 | len(previous)
    return header.to_bytes(4) + bytes([payload_type]) + previous + payload


class Order:
    """Packets as they come to packets as they were sent, with the places of lost ones.

    A packet in order is handed out at once: nothing is delayed until something is missing.
    """

    def __init__(self) -> None:
        self._next: int | None = None
        self._waiting: dict[int, Packet] = {}
        self._asked: set[int] = set()
        self._requests = 0
        self._in_vain = 0

    @property
    def patience(self) -> int:
        """Number of later packets that wait for a missing one."""
        return ASKED_PATIENCE_PACKETS if self._in_vain < IGNORED_REQUESTS else PATIENCE_PACKETS

    def wanted(self) -> list[int]:
        """Sequence numbers to ask the caller for, now that a packet came; most of the time none."""
        if self._next is None or self._requests >= len(ASK_PACKETS):
            return []
        if len(self._waiting) < ASK_PACKETS[self._requests]:
            return []
        self._requests += 1
        newest = max((number - self._next) % SEQUENCES for number in self._waiting)
        numbers = ((self._next + ahead) % SEQUENCES for ahead in range(newest))
        missing = [number for number in numbers if number not in self._waiting]
        if len(self._asked) > JUMP_PACKETS:  # of a caller who never answers
            self._asked.clear()
        self._asked.update(missing)
        return missing

    def push(self, packet: Packet) -> Iterator[Packet | Lost]:
        """Yield the packets that can be played now that this one is here."""
        if packet.sequence in self._asked:
            self._asked.discard(packet.sequence)
            self._in_vain = 0
        if self._next is None:
            self._next = packet.sequence
        ahead = (packet.sequence - self._next) % SEQUENCES
        if ahead > SEQUENCES - JUMP_PACKETS:
            return  # too late, or a second time
        if ahead > JUMP_PACKETS:
            self._waiting.clear()
            self._next, ahead = packet.sequence, 0
        self._waiting[packet.sequence] = packet
        for before, (ticks, copy) in enumerate(packet.copies[:ahead], start=1):
            number = (packet.sequence - before) % SEQUENCES
            timestamp = (packet.timestamp - ticks) % TIMESTAMPS
            self._waiting.setdefault(number, Packet(packet.payload_type, number, timestamp, packet.ssrc, copy))
        while self._waiting:
            found = self._waiting.pop(self._next, None)
            following = (self._next + 1) % SEQUENCES
            if found is not None:
                yield found
            elif len(self._waiting) >= self.patience:
                self._in_vain += self._next in self._asked
                behind = self._waiting.get(following)
                yield Lost(behind.payload if behind else None)
            else:
                return
            self._next, self._requests = following, 0
