"""RTP packets and their order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.realtime.media import rtp
from voiceapp.realtime.media.rtp import PATIENCE_PACKETS, Lost, Order, Packet


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
        ([1, *range(3, 10)], ["1"]),
        ([1, *range(3, 11)], ["1", "-3", *map(str, range(3, 11))]),
        ([1, *range(4, 12)], ["1", "-", "-4", *map(str, range(4, 12))]),
        ([1, *range(3, 10), 2], list(map(str, range(1, 10)))),
        ([1, *range(3, 11), 2], ["1", "-3", *map(str, range(3, 11))]),
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


def test_what_is_missing_is_asked_for_twice() -> None:
    order, wanted = Order(), []
    for number in (1, 3, 4, 6, 7, 8, 9, 10, 11):
        list(order.push(packet(number)))
        wanted.append(order.wanted())
    assert wanted == [[], [], [2], [], [], [2, 5], [], [], [5]]


def test_who_does_not_send_again_is_not_waited_for_long() -> None:
    order = Order()
    for number in range(200):
        if number % 20:
            list(order.push(packet(number)))
            order.wanted()
    assert order.patience == PATIENCE_PACKETS
    list(order.push(packet(180)))  # long too late, but it came
    assert order.patience > PATIENCE_PACKETS


def test_copies_fill_the_places_of_what_was_lost() -> None:
    def both(number: int) -> Packet:
        content = rtp.redundant(111, str(number).encode(), str(number - 1).encode(), 960)
        return rtp.with_copies(replace(packet(number), payload_type=63, payload=content), 111)

    order = Order()
    found = [piece for number in (65534, 65536, 65537, 65539) for piece in order.push(both(number))]
    assert [(piece.payload, piece.timestamp) for piece in found if isinstance(piece, Packet)] == [
        (str(number).encode(), number * 960) for number in range(65534, 65540)
    ]
    assert order.wanted() == []


@given(st.binary(max_size=64))
def test_any_redundant_data_is_read_or_refused(data: bytes) -> None:
    try:
        read = rtp.with_copies(replace(packet(1), payload=data), 111)
    except ValueError:
        return
    assert len(read.payload) + sum(len(copy) for _, copy in read.copies) < len(data)
