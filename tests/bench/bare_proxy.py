"""What a bridge is measured against: a service that echoes audio, and proxies that do nothing but pass frames on.

`python -m tests.bench.bare_proxy service PORT`, or `websockets PORT SERVICE_PORT`; `application` is the ASGI one, for
daphne, with the port of the service in BARE_SERVICE_PORT.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

import aiohttp
import websockets
from websockets.asyncio.server import ServerConnection

PATH = "/api-ws/v1/realtime"
CREATED = json.dumps({"type": "session.created", "session": {"id": "sess_bench", "model": "bench"}})
BEFORE = '{"type":"response.audio.delta","event_id":"e","response_id":"r","item_id":"i","output_index":0,'
AUDIO = '"audio":"'

Message = MutableMapping[str, Any]


def echoed(text: str) -> str:
    """The audio that a client has appended, as speech."""
    return f'{BEFORE}"content_index":0,"delta":"{text[text.index(AUDIO) + len(AUDIO) :]}'


async def serve(port: int) -> None:
    """The service."""

    async def talk(socket: ServerConnection) -> None:
        await socket.send(CREATED)
        async for text in socket:
            await socket.send(echoed(str(text)))

    async with websockets.serve(talk, "127.0.0.1", port, compression=None, ping_interval=None, max_size=None):
        await asyncio.Event().wait()


async def proxy(port: int, service_port: int) -> None:
    """A proxy that is written on `websockets` alone."""

    async def carry(socket: ServerConnection) -> None:
        async with websockets.connect(
            f"ws://127.0.0.1:{service_port}{PATH}", compression=None, ping_interval=None, max_size=None, proxy=None
        ) as service:

            async def up() -> None:
                async for text in socket:
                    await service.send(text)

            async def down() -> None:
                async for text in service:
                    await socket.send(text)

            with suppress(websockets.ConnectionClosed):
                await asyncio.gather(up(), down())

    async with websockets.serve(carry, "127.0.0.1", port, compression=None, ping_interval=None, max_size=None):
        await asyncio.Event().wait()


async def application(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """A proxy as an ASGI application, with aiohttp towards the service as our server has it."""
    if scope["type"] != "websocket":
        return
    url = f"ws://127.0.0.1:{os.environ['BARE_SERVICE_PORT']}{PATH}"
    async with aiohttp.ClientSession() as session, session.ws_connect(url, max_msg_size=0) as service:
        await receive()
        await send({"type": "websocket.accept"})

        async def down() -> None:
            async for message in service:
                await send({"type": "websocket.send", "text": message.data})

        carrying = asyncio.create_task(down())
        while (message := await receive())["type"] == "websocket.receive":
            await service.send_str(message["text"])
        carrying.cancel()


if __name__ == "__main__":
    role, *ports = sys.argv[1:]
    asyncio.run(serve(int(ports[0])) if role == "service" else proxy(int(ports[0]), int(ports[1])))
