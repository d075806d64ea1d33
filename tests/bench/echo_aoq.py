"""The bot of `echo_ours` on this product's AOQ transport: `/offer` gives the place of its relay instead of an answer.

On the path `/echo` of the relay, objects come back as they are, without a codec.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web

from tests.bench.echo_ours import talk
from voiceapp.realtime.aoq import moq_adapter
from voiceapp.realtime.aoq.certificate import RelayCertificate
from voiceapp.realtime.aoq.moq_adapter import ConnectionLost, Incoming, MoqConnection
from voiceapp.realtime.aoq.tracks import AoqTracks
from voiceapp.realtime.transports.aoq import AoqTransport


async def echo(connection: MoqConnection) -> None:
    """Send every object of the audio track back."""
    await connection.subscribe()
    async for number, payload in connection.packets():
        connection.send_packet(number, payload)


async def answer(incoming: Incoming, pcm: bytes) -> None:
    with suppress(ConnectionLost, TimeoutError):
        connection = await incoming.accept()
        if incoming.path == "/echo":
            await echo(connection)
            return
        tracks = AoqTracks(connection)
        async with tracks.open():
            await talk(AoqTransport(tracks), pcm)


async def serve(port: int, pcm: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        certificate = RelayCertificate(Path(folder))
        certificate.renew("127.0.0.1", datetime.now(UTC))
        async with moq_adapter.listen("127.0.0.1", 0, certificate.path, certificate.path) as listening:

            async def offer(request: web.Request) -> web.Response:
                return web.json_response({"port": listening.port, "fingerprint": certificate.fingerprint})

            application = web.Application()
            application.router.add_post("/offer", offer)
            runner = web.AppRunner(application)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", port).start()
            async with asyncio.TaskGroup() as tasks:
                async for incoming in listening.incoming():
                    tasks.create_task(answer(incoming, pcm))


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2]).read_bytes()))
