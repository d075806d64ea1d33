"""RTP packets and their order (RFC 3550); no I/O."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

HEADER = struct.Struct("!BBHII")
VERSION = 0x80
SEQUENCES = 1 << 16
TIMESTAMPS = 1 << 32
PATIENCE_PACKETS = 3
"""That many later packets wait for a missing one: 60 ms at 20 ms each, about the jitter of a bad wireless network."""
JUMP_PACKETS = 100
"""A gap this long is another stream, not a loss."""


@dataclass(frozen=True, slots=True)
class Packet:
    """What is used of an RTP packet."""

    payload_type: int
    sequence: int
    timestamp: int
    """In units of the codec's clock: 48 kHz for Opus, whatever is in it."""
    ssrc: int
    payload: bytes


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


class Order:
    """Packets as they come to packets as they were sent, with the places of lost ones.

    A packet in order is handed out at once: nothing is delayed until something is missing.
    """

    def __init__(self) -> None:
        self._next: int | None = None
        self._waiting: dict[int, Packet] = {}

    def push(self, packet: Packet) -> Iterator[Packet | Lost]:
        """What can be played now that this packet is here."""
        if self._next is None:
            self._next = packet.sequence
        ahead = (packet.sequence - self._next) % SEQUENCES
        if ahead > SEQUENCES - JUMP_PACKETS:
            return  # too late, or a second time
        if ahead > JUMP_PACKETS:
            self._waiting.clear()
            self._next = packet.sequence
        self._waiting[packet.sequence] = packet
        while self._waiting:
            found = self._waiting.pop(self._next, None)
            following = (self._next + 1) % SEQUENCES
            if found is not None:
                yield found
            elif len(self._waiting) >= PATIENCE_PACKETS:
                behind = self._waiting.get(following)
                yield Lost(behind.payload if behind else None)
            else:
                return
            self._next = following
