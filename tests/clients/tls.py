"""A server as a proxy shows it to the world, over https: there are libraries that open no other connection."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.loop_thread import LoopThread

MAKE_S = 60


@contextlib.contextmanager
def over_https(address: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Where the server at `address` (`host:port`) is reached over https, `127.0.0.1:port`; and its certificate."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-days", "1", "-nodes", *subject, *files],
        check=True,
        capture_output=True,
        timeout=MAKE_S,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
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
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", certificate
    finally:
        loop.call(server.close)
        loop.close()
