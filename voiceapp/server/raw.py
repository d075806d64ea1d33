"""Bytes written straight onto a connection: WebSocket frames, and responses where no request exists that an application
could answer."""

from __future__ import annotations

import struct
from http import HTTPStatus

from voiceapp import formats
from voiceapp.http.error_responses import ErrorResponse, error_json
from voiceapp.http.refusals import Headers, json_headers


def raw_answer(status: int, headers: Headers, body: bytes) -> bytes:
    """A complete HTTP/1.1 answer that ends its connection; Content-Length and Connection are set here."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    lines = [f"HTTP/1.1 {status} {phrase}".encode()]
    lines += [name + b": " + value for name, value in headers if name.lower() not in (b"content-length", b"connection")]
    lines += [b"content-length: " + str(len(body)).encode(), b"connection: close", b"", body]
    return b"\r\n".join(lines)


def raw_refusal(
    status: int, code: str, message: str, request_id: str | None = None, headers: Headers = (), *, path: str = ""
) -> bytes:
    """`raw_answer` with the JSON of a refusal, in the shape that the clients of `path` read."""
    request_id = request_id or formats.request_id()
    body = error_json(path, ErrorResponse(status, code, message), request_id)
    return raw_answer(status, [*json_headers(body, request_id), *headers], body)


def frame(first_byte: int, payload: bytes) -> bytes:
    """A complete unmasked WebSocket frame (RFC 6455, section 5.2)."""
    length = len(payload)
    if length < 126:
        return bytes((first_byte, length)) + payload
    if length < 65536:
        return struct.pack("!BBH", first_byte, 126, length) + payload
    return struct.pack("!BBQ", first_byte, 127, length) + payload
