"""Bytes that no client library sends on a WebSocket, and a peer that sends them."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_S = 30.0
MASK = b"\0\0\0\0"
"""Leaves a payload as it is."""


def text_frame(payload: bytes) -> bytes:
    """A whole text message, masked."""
    return _frame(b"\x81", payload)


def binary_frame(payload: bytes) -> bytes:
    """A whole binary message, masked."""
    return _frame(b"\x82", payload)


def _frame(head: bytes, payload: bytes) -> bytes:
    length = len(payload)
    if length < 126:
        return head + bytes((0x80 | length,)) + MASK + payload
    if length < 65_536:
        return head + b"\xfe" + length.to_bytes(2, "big") + MASK + payload
    return head + b"\xff" + length.to_bytes(8, "big") + MASK + payload


BROKEN = {
    "not masked": b"\x81\x05hello",
    "reserved bits": b"\xf1\x85" + MASK + b"hello",
    "an unknown opcode": b"\x83\x85" + MASK + b"hello",
    "a ping in pieces": b"\x09\x80" + MASK,
    "a long ping": b"\x89\xfe\x00\x7e" + MASK + bytes(126),
    "text that is no UTF-8": b"\x81\x82" + MASK + b"\xff\xfe",
    "the end of nothing": b"\x80\x80" + MASK,
    "a message within a message": b"\x01\x81" + MASK + b"a" + text_frame(b"b"),
    "a negative length": b"\x81\xff" + b"\xff" * 8 + MASK,
    "more than a mebibyte": b"\x81\xff" + (2**21).to_bytes(8, "big") + MASK + bytes(65_536),
    "half a close code": b"\x88\x81" + MASK + b"\x03",
    "a close code that never leaves a library": b"\x88\x82" + MASK + b"\x03\xed",
    "a request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}
"""Each ends the connection that it comes on."""

ODD = {
    "a binary message": b"\x82\x84" + MASK + b"\0\1\2\3",
    "nothing": text_frame(b""),
    "arrays in each other": text_frame(b"[" * 100_000),
    "objects in each other": text_frame(b'{"type":' * 100_000),
    "a long number": text_frame(b"9" * 100_000),
    "no event": text_frame(b'{"type": "' + b"x" * 100_000 + b'"}'),
    "an item in pieces": b"\x01\x81" + MASK + b"{" + b"\x00\x80" + MASK + b"\x80\x81" + MASK + b"}",
    "a pong that nobody asked for": b"\x8a\x80" + MASK,
}
"""Each is borne, or answered with an `error` event."""


@contextmanager
def opened(address: str, key: str, *, path: str = "/api-ws/v1/realtime?model=voice") -> Iterator[socket.socket]:
    """A connection on which the handshake of a conversation has succeeded."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as peer:
        peer.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
            f"Authorization: Bearer {key}\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            more = peer.recv(1)
            assert more, head
            head += more
        assert head.startswith(b"HTTP/1.1 101 "), head
        yield peer


def until_ended(peer: socket.socket) -> bytes:
    """What arrives until the server hangs up."""
    received = b""
    try:
        while more := peer.recv(65_536):
            received += more
    except ConnectionError:
        pass
    return received
