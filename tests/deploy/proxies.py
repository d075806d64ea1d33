"""The proxy files, in `make soak`, before two processes: a restart refuses no new session, and callers come back."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import websockets
from websockets.exceptions import ConnectionClosed, WebSocketException

from tests.certificates import self_signed
from tests.ports import free_port
from tests.realtime.conftest import Serve, home, serve
from tests.realtime.product import Product
from tests.realtime.talker import Talker
from tests.serving import PATIENCE_S, ROOT

__all__ = ["home", "serve"]

SESSIONS = 200
"""That begin behind each proxy, at least."""
COME_BACK = 12
LOOK_S = 2.5
"""Time in which each proxy, which looks once a second, finds a process that is back."""
PROXIES = {
    "nginx": ("nginx.conf", ["-p", ".", "-g", "daemon off; pid pid; error_log stderr;", "-c"]),
    "haproxy": ("haproxy.cfg", ["-db", "-f"]),
    "caddy": ("Caddyfile", ["run", "--adapter", "caddyfile", "--config"]),
}
"""File of each, and arguments that run it in the foreground."""
HERE = {
    "listen 443 ssl": "listen 127.0.0.1:{port} ssl",
    "server_name voice.example.org": "server_name 127.0.0.1",
    "bind :443": "bind 127.0.0.1:{port}",
    "/etc/ssl/voice.example.org.pem": "{folder}/pair.pem",
    "/etc/ssl/voice.example.org.key": "{folder}/key.pem",
    "voice.example.org {{": "https://127.0.0.1:{port} {{\n\ttls {folder}/pair.pem {folder}/key.pem",
    "127.0.0.1:8001": "127.0.0.1:{first}",
    "127.0.0.1:8002": "127.0.0.1:{second}",
}


@pytest.fixture
def servers(serve: Serve) -> tuple[Product, Product]:
    """Two processes on one database, each on a port of its own."""
    room = dict.fromkeys(("MAX_SESSIONS", "MAX_SESSIONS_PER_ACCOUNT", "MAX_CONNECTIONS_PER_ADDRESS"), "1000")
    common = {"TRUST_PROXY": "1", **room}
    first = serve(port=free_port(), **common)
    return first, serve(port=free_port(), DATABASE_URL=first.environment["DATABASE_URL"], **common)


@pytest.fixture
def ports(servers: tuple[Product, Product], tmp_path: Path) -> Iterator[dict[str, int]]:
    """Port of each proxy, which runs by its file."""
    found = {proxy: free_port() for proxy in PROXIES}
    with ExitStack() as running:
        for proxy, (name, arguments) in PROXIES.items():
            (folder := tmp_path / proxy).mkdir()
            self_signed(folder)
            (folder / "pair.pem").write_text(
                (folder / "certificate.pem").read_text() + (folder / "key.pem").read_text()
            )
            text = (ROOT / "docs" / "deploy" / name).read_text()
            values = {"folder": folder, "port": found[proxy], "first": servers[0].port, "second": servers[1].port}
            for theirs, ours in HERE.items():
                text = text.replace(theirs.replace("{{", "{"), ours.format(**values))
            around = {
                "nginx": "events {{}}\nhttp {{\n{}\n}}",
                "caddy": "{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{}",
            }
            (folder / name).write_text(around.get(proxy, "{}").format(text))
            program = shutil.which(proxy, path="/usr/sbin:/usr/bin:/usr/local/bin")
            assert program, f"{proxy} is missing: apt-get install {proxy}"
            process = subprocess.Popen([program, *arguments, str(folder / name)], cwd=folder, env={"HOME": str(folder)})
            running.callback(process.wait)
            running.callback(process.terminate)
        yield found


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_a_caller_comes_back_to_the_process_that_holds_the_conversation(
    servers: tuple[Product, Product], ports: dict[str, int]
) -> None:
    key = {"Authorization": f"Bearer {servers[0].keys['good']}"}

    async def first_event(proxy: str, query: str) -> dict[str, Any]:
        url = f"wss://127.0.0.1:{ports[proxy]}/api-ws/v1/realtime?model=voice&{query}"
        async with websockets.connect(url, ssl=trusting(), additional_headers=key, proxy=None) as session:
            event: dict[str, Any] = json.loads(await session.recv())
            session.transport.abort()
            return event

    found = {}
    for proxy in PROXIES:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(OSError, WebSocketException):  # until it has looked at both processes
                    await first_event(proxy, "resume=on")
                    break
        await asyncio.sleep(LOOK_S)
        tokens = [secrets.token_urlsafe(24) for _ in range(COME_BACK)]
        begun = [(await first_event(proxy, f"resume={token}"))["session"]["id"] for token in tokens]
        back = {(await first_event(proxy, f"resume={token}&last=1"))["type"] for token in tokens}
        rows = [
            await servers[0].row("select served_by from realtime_realtimesession where id = ?", each) for each in begun
        ]
        found[proxy] = (back, len({row["served_by"] for row in rows}))
    assert found == dict.fromkeys(PROXIES, ({"session.resumed"}, 2))


async def test_a_rolling_restart_refuses_no_session(servers: tuple[Product, Product], ports: dict[str, int]) -> None:
    key = {"Authorization": f"Bearer {servers[0].keys['good']}"}
    begun = dict.fromkeys(PROXIES, 0)
    refused: list[str] = []
    is_over = asyncio.Event()

    async def begin(proxy: str, *, asks: bool = False) -> None:
        """A session; one that asks may be in the middle of a reply when its process stops."""
        url = f"wss://127.0.0.1:{ports[proxy]}/api-ws/v1/realtime?model=voice"
        async with websockets.connect(
            url, ssl=trusting(), additional_headers=key, proxy=None, open_timeout=20
        ) as session:
            assert json.loads(await session.recv())["type"] == "session.created"
            begun[proxy] += 1
            if asks:
                with suppress(ConnectionClosed):  # told to come again
                    await Talker(session).ask("What can you do?")
                    while json.loads(await session.recv())["type"] != "response.done":
                        pass

    async def keep_beginning(proxy: str, *, asks: bool) -> None:
        while not is_over.is_set():
            try:
                await begin(proxy, asks=asks)
            except (AssertionError, OSError, WebSocketException) as error:
                refused.append(f"{proxy}: {error!r}")

    async with asyncio.timeout(PATIENCE_S):
        for proxy in PROXIES:
            while not begun[proxy]:
                with suppress(OSError, WebSocketException):  # until it has looked at a process
                    await begin(proxy)
    async with asyncio.TaskGroup() as callers:
        for proxy in PROXIES:
            for asks in (True, False, False):
                callers.create_task(keep_beginning(proxy, asks=asks))
        for server in servers:
            await asyncio.sleep(LOOK_S)
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
        while min(begun.values()) < SESSIONS:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        is_over.set()
    print(begun)
    assert refused == []
