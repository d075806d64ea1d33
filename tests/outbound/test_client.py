"""Nobody gets inside through an address of theirs."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from tests.certificates import self_signed
from tests.web import Handler, everywhere, listening
from voiceapp.errors import InvalidParameter
from voiceapp.outbound.addresses import AddressNotAllowed, check_receiver
from voiceapp.outbound.client import FetchFailed, Outbound, ResponseTooLarge, TlsInvalid

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]

HOSTILE = [
    "http://127.0.0.1:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST.:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://2130706433:{port}/",
    "http://017700000001:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.255.255.254:{port}/",
    "http://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
    "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[fe80::1]:{port}/",
    "http://[fc00::1]:{port}/",
    "http://169.254.169.254:{port}/latest/meta-data/",
    "http://168.63.129.16:{port}/",
    "http://10.0.0.1:{port}/",
    "http://172.16.0.1:{port}/",
    "http://192.168.0.1:{port}/",
    "http://100.64.0.1:{port}/",
    "http://192.0.0.1:{port}/",
    "http://224.0.0.1:{port}/",
    "http://user@127.0.0.1:{port}/",
    "http://example.org@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}#@example.org/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://127。0。0。1:{port}/",
    "http://example.org\\@127.0.0.1:{port}/",
    "ftp://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/",
    "http:///",
    "http://",
]


@asynccontextmanager
async def serving(answer: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A small HTTP server on loopback; its port."""
    async with listening(everywhere(answer), tls=tls) as origin:
        yield int(origin.rpartition(":")[2])


class Names(AbstractResolver):
    """A name server that gives one answer after the other, the last one again and again."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in found
        ]

    async def close(self) -> None:
        """Nothing is held."""


@pytest.mark.parametrize("template", HOSTILE)
async def test_it_does_not_reach_the_inside(template: str) -> None:
    reached: list[str] = []

    async def canary(request: web.BaseRequest) -> web.Response:
        reached.append(request.path)
        return web.Response()

    async with serving(canary) as port, Outbound() as client:
        with pytest.raises((InvalidParameter, FetchFailed)):
            await client.post(template.format(port=port), body=b"{}", headers={}, total_s=2)
    assert not reached


async def test_a_redirect_does_not_lead_inside(tmp_path: Path) -> None:
    async def inside(request: web.BaseRequest) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://127.0.0.2:1/secret"})

    async with serving(inside) as port:
        hole = [ipaddress.ip_network("127.0.0.1/32")]
        async with Outbound(allowed_networks=hole) as client:
            with pytest.raises(AddressNotAllowed):
                await client.download(f"http://127.0.0.1:{port}/", to=tmp_path / "a", max_bytes=10, total_s=60)
            answer = await client.post(f"http://127.0.0.1:{port}/", body=b"", headers={})
    assert answer.status == 302  # an answer like any other: nobody went there


async def test_it_fetches_through_a_hole_and_over_redirects(tmp_path: Path) -> None:
    async def files(request: web.BaseRequest) -> web.Response:
        if request.path == "/old":
            return web.Response(status=301, headers={"Location": "/new"})
        return web.Response(body=b"words", content_type="text/plain")

    async with serving(files) as port, Outbound(allowed_networks=LOOPBACK) as client:
        got = await client.download(f"http://127.0.0.1:{port}/old", to=tmp_path / "a", max_bytes=5, total_s=60)
        assert (got.content_type, got.size, got.path.read_bytes()) == ("text/plain", 5, b"words")
        with pytest.raises(ResponseTooLarge):
            await client.download(f"http://127.0.0.1:{port}/new", to=tmp_path / "b", max_bytes=4, total_s=60)
        with pytest.raises(FetchFailed, match="redirects more than"):
            async with serving(_again) as circle:
                await client.download(f"http://127.0.0.1:{circle}/", to=tmp_path / "c", max_bytes=4, total_s=60)


@pytest.mark.parametrize(
    "location", ["//[", "http://[x]/", "http://[::1/", "http://\udcff/", "http://127.0.0.1:99999/"]
)
async def test_a_redirect_to_what_is_no_address_is_told_in_a_sentence(location: str, tmp_path: Path) -> None:
    async def lost(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        name = location.encode("utf-8", "surrogateescape")
        writer.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + name + b"\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(lost, "127.0.0.1", 0) as server, Outbound(allowed_networks=LOOPBACK) as it:
        url, to = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", tmp_path / "a"
        for fetch in (
            it.download(url, to=to, max_bytes=10, total_s=60),
            it.resume(url, to=to, max_bytes=10, stalled_s=60, progress=lambda *_: None),
        ):
            with pytest.raises((FetchFailed, InvalidParameter), match=r"no address|not an address"):
                await fetch


async def test_a_file_is_asked_for_and_taken_as_it_is(tmp_path: Path) -> None:
    async def files(request: web.BaseRequest) -> web.Response:
        wanted = request.headers["Accept-Encoding"]
        compressed = {"Content-Encoding": "gzip"} if request.path == "/gz" else {}
        return web.Response(text=wanted, headers=compressed)

    async with serving(files) as port, Outbound(allowed_networks=LOOPBACK) as client:
        got = await client.download(f"http://127.0.0.1:{port}/", to=tmp_path / "a", max_bytes=100, total_s=60)
        assert got.path.read_text() == "identity"
        with pytest.raises(FetchFailed, match=r"compressed \(gzip\)"):
            await client.download(f"http://127.0.0.1:{port}/gz", to=tmp_path / "b", max_bytes=100, total_s=60)


async def _again(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": "/"})


async def test_a_certificate_that_nobody_vouches_for_is_told_apart(tmp_path: Path) -> None:
    async def fine(request: web.BaseRequest) -> web.Response:
        return web.Response()

    async with serving(fine, self_signed(tmp_path)) as port, Outbound(allowed_networks=LOOPBACK) as client:
        with pytest.raises(TlsInvalid, match="could not be verified: self-signed certificate"):
            await client.post(f"https://127.0.0.1:{port}/", body=b"", headers={})


async def test_what_cannot_be_reached_is_told_in_a_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        async with Outbound(allowed_networks=LOOPBACK) as client:
            with pytest.raises(FetchFailed, match="could not be reached"):
                await client.post(f"http://127.0.0.1:{taken.getsockname()[1]}/", body=b"", headers={})


@pytest.mark.parametrize(
    ("scheme", "answer", "told"),
    [
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", "could not be talked to over TLS; perhaps it serves http only."),
        ("http", b"SSH-2.0-OpenSSH_9.2\r\n", "did not answer as HTTP has it."),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "broke off."),
    ],
)
async def test_what_goes_wrong_is_told_apart(scheme: str, answer: bytes, told: str) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server, Outbound(allowed_networks=LOOPBACK) as client:
        url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(FetchFailed) as failed:
            await client.post(url, body=b"", headers={})
    assert failed.value.message == f"127.0.0.1 {told}"


async def test_names_are_looked_up_however_busy_the_threads_are() -> None:
    async def fine(request: web.BaseRequest) -> web.Response:
        return web.Response()

    loop, over = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    busy = loop.run_in_executor(None, over.wait)
    try:
        async with serving(fine) as port, Outbound(allowed_networks=LOOPBACK) as client:
            for host in ("127.0.0.1", "localhost"):
                await check_receiver(f"http://{host}:{port}/", LOOPBACK)
                assert (await client.post(f"http://{host}:{port}/", body=b"", headers={})).status == 200
    finally:
        over.set()
        await busy


@asynccontextmanager
async def ending(*answers: int, brutally: bool = False) -> AsyncIterator[tuple[int, list[int]]]:
    """A server that ends its n-th connection when so many requests on it were answered, and one more came.

    Yields its port, and how many requests came on each connection.
    """
    came: list[int] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine = len(came)
        came.append(0)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                came[mine] += 1
                if came[mine] > answers[mine]:
                    break
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        if brutally:
            writer.transport.abort()
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], came


@pytest.mark.parametrize("brutally", [False, True])
async def test_a_kept_connection_that_its_server_ends_costs_no_attempt(brutally: bool) -> None:
    async with ending(1, 1, 1, brutally=brutally) as (port, came), Outbound(allowed_networks=LOOPBACK) as client:
        url = f"http://127.0.0.1:{port}/"
        await asyncio.gather(*(client.post(url, body=b"", headers={}) for _ in range(2)))  # both are kept
        assert (await client.post(url, body=b"", headers={})).status == 200
    assert sorted(came) == [1, 1, 2]


async def test_a_new_connection_that_its_server_ends_is_a_failure_at_once() -> None:
    async with ending(0, 1) as (port, came), Outbound(allowed_networks=LOOPBACK) as client:
        with pytest.raises(FetchFailed, match="broke off"):
            await client.post(f"http://127.0.0.1:{port}/", body=b"", headers={})
    assert came == [1]


async def test_a_name_that_is_not_known_is_asked_for_once() -> None:
    class Nameless(Names):
        asked = 0

        async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
            self.asked += 1
            raise OSError("nobody has that name")

    names = Nameless()
    async with Outbound(resolver=names) as client:
        with pytest.raises(FetchFailed):
            await client.post("http://receiver.example/", body=b"", headers={})
    assert names.asked == 1


async def test_a_connection_is_let_go_before_usual_servers_end_it() -> None:
    ended = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await reader.read()
        writer.close()
        ended.set()

    async with (
        await asyncio.start_server(take, "127.0.0.1", 0) as server,
        Outbound(allowed_networks=LOOPBACK) as client,
    ):
        await client.post(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", body=b"", headers={})
        await asyncio.wait_for(ended.wait(), 4.9)
