"""What a bridge is measured against: a service that echoes audio, and a proxy that does nothing but pass frames on.

`python -m tests.bench.bare_proxy service PORT`, or `proxy PORT SERVICE_PORT`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress

import websockets
from websockets.asyncio.server import ServerConnection

PATH = "/api-ws/v1/realtime"
CREATED = json.dumps({"type": "session.created", "session": {"id": "sess_bench", "model": "bench"}})
BEFORE = '{"type":"response.audio.delta","event_id":"e","response_id":"r","item_id":"i","output_index":0,'
AUDIO = '"audio":"'


def echoed(text: str) -> str:
    """The audio that a client has appended, as speech."""
    return f'{BEFORE}"content_index":0,"delta":"{text[text.index(AUDIO) + len(AUDIO) :]}'


async def serve(port: int) -> None:
    async def talk(socket: ServerConnection) -> None:
        await socket.send(CREATED)
        async for text in socket:
            await socket.send(echoed(str(text)))

    async with websockets.serve(talk, "127.0.0.1", port, compression=None, ping_interval=None, max_size=None):
        await asyncio.Event().wait()


async def proxy(port: int, service_port: int) -> None:
    """The proxy, written on `websockets` alone."""

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


if __name__ == "__main__":
    role, *ports = sys.argv[1:]
    asyncio.run(serve(int(ports[0])) if role == "service" else proxy(int(ports[0]), int(ports[1])))
