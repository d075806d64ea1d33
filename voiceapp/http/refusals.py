"""Answers the server gives by itself, before or instead of the application: JSON with code, message and request id.

The same two functions refuse an HTTP request and a WebSocket handshake: for the latter the messages carry the prefix of
the ASGI extension `websocket.http.response`, which both of our servers offer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from corsheaders.middleware import CorsMiddleware
from django.http import HttpRequest, HttpResponse

from voiceapp import formats
from voiceapp.http.error_responses import ErrorResponse, error_json

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]
LOST = "voiceapp.lost"
"""Extension of the scope of a WebSocket: `code` is a future of the close code, done as soon as the connection ended."""


_cors = CorsMiddleware(HttpResponse)


def cors_headers(path: str, origin: str) -> list[tuple[bytes, bytes]]:
    """Headers by which a page of another origin may read a response that was not written by Django."""
    request, response = HttpRequest(), HttpResponse()
    request.path_info = path
    request.META["HTTP_ORIGIN"] = origin
    del response["Content-Type"]
    _cors.add_response_headers(request, response)
    return [(name.lower().encode(), value.encode()) for name, value in response.items()]


def json_headers(body: bytes, request_id: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-request-id", request_id.encode()),
    ]


async def refuse(scope: Scope, send: Send, status: int, code: str, message: str, headers: Headers = ()) -> None:
    """Answer a request, or an unaccepted WebSocket handshake, with a status and the JSON of a refusal."""
    request_id = request_id_of(scope)
    body = error_json(scope["path"], ErrorResponse(status, code, message), request_id)
    prefix = "websocket." if scope["type"] == "websocket" else ""
    await send(
        {
            "type": f"{prefix}http.response.start",
            "status": status,
            "headers": [*json_headers(body, request_id), *headers],
        }
    )
    await send({"type": f"{prefix}http.response.body", "body": body, "more_body": False})


def request_id_of(scope: Scope) -> str:
    """The id that the server gave this request or socket, and logs it by; a fresh one where no server of ours did."""
    state = scope.setdefault("state", {})
    if "request_id" not in state:
        state["request_id"] = formats.request_id()
    return str(state["request_id"])
