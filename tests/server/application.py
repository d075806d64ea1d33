"""A small ASGI application with one path per thing a server can do wrong."""

from __future__ import annotations

import asyncio
import json

from voiceapp.drain import drain_event
from voiceapp.engines.interfaces import Provider
from voiceapp.engines.models import weights
from voiceapp.http.refusals import Message, Receive, Scope, Send, refuse

LARGE = 5_000_000
"""Bytes that no buffer between server and client takes."""


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await _http(scope, receive, send)
    else:
        await _SOCKETS[scope["path"]](scope, receive, send)


async def _http(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/fail":
        raise ValueError("as asked")
    if scope["path"] == "/slow":
        await asyncio.sleep(1)
    if scope["path"] == "/pour":
        await _pour(send)
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        more = message["more_body"]
    seen = {
        "path": scope["path"],
        "root_path": scope["root_path"],
        "client": scope["client"][0],
        "scheme": scope["scheme"],
        "received": len(body),
    }
    if scope["path"] == "/large":
        seen["filling"] = "x" * LARGE
    answer = str(sent["pour"]).encode() if scope["path"] == "/poured" else json.dumps(seen).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


async def _pour(send: Send) -> None:
    """Sends events without end, as fast as they are taken, and never waits for anything else."""
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    while True:
        await send({"type": "http.response.body", "body": b"data: " + b"x" * 10_000 + b"\n\n", "more_body": True})
        sent["pour"] += 1


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})


async def _whoami(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    subprotocol = next(iter(scope["subprotocols"]), None)
    await send({"type": "websocket.accept", "subprotocol": subprotocol, "headers": [(b"x-greeting", b"hello")]})
    seen = {"client": scope["client"][0], "root_path": scope["root_path"], "scheme": scope["scheme"]}
    await send({"type": "websocket.send", "text": json.dumps(seen)})
    await send({"type": "websocket.close", "code": 1000, "reason": "said it"})


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    status = int(scope["query_string"])
    await refuse(scope, send, status, "Refused", "As asked.", [(b"retry-after", b"7")])


async def _refuse_at_length(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await refuse(scope, send, 403, "Refused", "x" * LARGE)


async def _close_before_accept(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.close", "code": 4401})


async def _close(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": int(scope["query_string"]), "reason": "because"})


async def _fail_before(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError("as asked")


async def _fail_after(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    raise ValueError("as asked")


async def _return(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})


async def _polite(scope: Scope, receive: Receive, send: Send) -> None:
    """Ends itself when the server stops, as a conversation does."""
    await receive()
    await send({"type": "websocket.accept"})
    await drain_event().wait_begun()
    await send({"type": "websocket.send", "text": "closing"})
    await send({"type": "websocket.close", "code": 4012, "reason": "stopping"})


async def _flood(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends without end; tells another connection how far it got."""
    await receive()
    await send({"type": "websocket.accept"})
    message: Message = {"type": "websocket.send", "text": "x" * 10_000}
    sent["flood"] = 0
    while True:
        await send(message)
        sent["flood"] += 1
        await asyncio.sleep(0)


async def _deaf(scope: Scope, receive: Receive, send: Send) -> None:
    """Accepts and never reads."""
    await receive()
    await send({"type": "websocket.accept"})
    await asyncio.Event().wait()


async def _progress(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": str(sent["flood"])})


sent = {"flood": 0, "pour": 0}

_SOCKETS = {
    "/echo": _echo,
    "/whoami": _whoami,
    "/refuse": _refuse,
    "/refuse-at-length": _refuse_at_length,
    "/close-before-accept": _close_before_accept,
    "/close": _close,
    "/fail-before": _fail_before,
    "/fail-after": _fail_after,
    "/return": _return,
    "/polite": _polite,
    "/flood": _flood,
    "/deaf": _deaf,
    "/progress": _progress,
}


class NeedsEveryModelFile(Provider):
    """A model that cannot serve before every model file was fetched."""

    def check(self) -> None:
        weights.check(*(file.name for model in weights.MODELS for file in model.files))
