"""Bytes that no client library sends on a WebSocket, and a peer that sends them."""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


REALTIME = "/api-ws/v1/realtime?model=voice"
INFERENCE = "/api-ws/v1/inference"


def event(type_: str, **fields: Any) -> bytes:
    return text_frame(json.dumps({"type": type_, **fields}).encode())


def run_task(action: str, task_id: str = "one", **payload: Any) -> bytes:
    header = {"action": action, "task_id": task_id, "streaming": "duplex"}
    return text_frame(json.dumps({"header": header, "payload": {"input": {}, **payload}}).encode())


def begin(task_id: str = "one", kind: str = "asr", model: str = "fun-asr-realtime", **parameters: Any) -> bytes:
    return run_task("run-task", task_id, task=kind, model=model, parameters=parameters)


def said(text: str) -> bytes:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return event("conversation.item.create", item=item)


LEGAL = {
    "much sound at once": (REALTIME, [event("input_audio_buffer.append", audio="A" * 480_000)] * 2),
    "long instructions": (REALTIME, [event("session.update", session={"instructions": "Be brief. " * 2_000})] * 9),
    "a long message": (REALTIME, [said("for me " * 100_000), event("response.create")]),
    "a long conversation": (REALTIME, [*([said("for me " * 280)] * 198), event("response.create")]),
    "minutes in one frame": (INFERENCE, [begin(format="pcm", sample_rate=8000), binary_frame(bytes(1024 * 1024))]),
    "a long text": (
        INFERENCE,
        [begin(kind="tts", model="cosyvoice-v2"), run_task("continue-task", input={"text": "1,111" * 4_000})],
    ),
}
"""By name: where to send them, and what: nothing in them is wrong."""


@contextmanager
def opened(address: str, key: str, *, path: str = REALTIME) -> Iterator[socket.socket]:
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
