"""A server as a proxy shows it to the world, over https: there are libraries that open no other connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.certificates import self_signed
from tests.loop_thread import LoopThread


@contextlib.contextmanager
def over_https(address: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Where the server at `address` (`host:port`) is reached over https, `127.0.0.1:port`; and its certificate."""
    context = self_signed(folder)
    host, _, port = address.partition(":")

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))

    loop = LoopThread()
    server = loop.run(asyncio.start_server(serve, "127.0.0.1", 0, ssl=context))
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", folder / "certificate.pem"
    finally:
        loop.call(server.close)
        loop.close()
