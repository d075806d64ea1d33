"""RTP packets and their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.realtime.media import rtp
from voiceapp.realtime.media.rtp import Lost, Order, Packet


def packet(number: int) -> Packet:
    return Packet(111, number % rtp.SEQUENCES, number * 960 % rtp.TIMESTAMPS, 7, str(number).encode())


def played(numbers: list[int]) -> list[str]:
    """Numbers as they come to what is played; `-` is a loss, with what is known of the following packet."""
    order = Order()
    found = [piece for number in numbers for piece in order.push(packet(number))]
    return [
        f"-{(piece.following or b'').decode()}" if isinstance(piece, Lost) else piece.payload.decode()
        for piece in found
    ]


def test_a_packet_survives_the_wire() -> None:
    data = rtp.build(96, 65535, 4_000_000_000, 123, b"opus", marker=True)
    assert rtp.parse(data) == Packet(96, 65535, 4_000_000_000, 123, b"opus")
    assert data[1] & 0x80


def test_sources_extensions_and_padding_are_left_out() -> None:
    header = bytes([0x80 | 0x20 | 0x10 | 2, 96]) + bytes(10)
    extension = b"\xbe\xde\0\1abcd"
    data = header + bytes(8) + extension + b"opus" + b"\0\0\3"
    assert rtp.parse(data).payload == b"opus"


@given(st.binary(max_size=64))
def test_any_bytes_are_a_packet_or_refused(data: bytes) -> None:
    try:
        rtp.parse(data)
    except ValueError:
        return
    assert data[0] >> 6 == 2


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        ([1, 2, 3], ["1", "2", "3"]),
        ([1, 3, 2, 4], ["1", "2", "3", "4"]),
        ([1, 4, 3, 2, 5], ["1", "2", "3", "4", "5"]),
        ([1, 3, 4], ["1"]),
        ([1, 3, 4, 5], ["1", "-3", "3", "4", "5"]),
        ([1, 4, 5, 6], ["1", "-", "-4", "4", "5", "6"]),
        ([1, 3, 4, 5, 2], ["1", "-3", "3", "4", "5"]),
        ([1, 1, 2, 2], ["1", "2"]),
        ([65535, 65536, 65538, 65537], ["65535", "65536", "65537", "65538"]),
        ([1, 5000, 5001], ["1", "5000", "5001"]),
    ],
)
def test_packets_are_played_as_they_were_sent(came: list[int], expected: list[str]) -> None:
    assert played(came) == expected


@given(st.permutations(range(3)), st.integers(0, 70_000))
def test_a_small_disorder_is_put_right(disorder: list[int], start: int) -> None:
    numbers = [start + number for number in (0, *(1 + place for place in disorder), 4, 5, 6)]
    assert played(numbers) == [str(start + number) for number in range(7)]
