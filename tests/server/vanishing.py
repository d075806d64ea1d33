"""Clients that vanish without a word, in a network of their own: `python -m tests.server.vanishing` (a process each).

Run in a new network namespace (`unshare --net`), it serves the product there, lets clients connect from a second
namespace over a pair of virtual cables, and pulls the cable: no packet leaves or arrives any more, so nobody is told
that a connection is over. Where the system grants no namespaces, the clients are frozen instead: they answer nothing,
and their system still acknowledges what is sent, so that only WebSockets can be seen to end.

It prints as JSON what the server held and still holds, and after how many seconds it held nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import django

SERVER, CLIENTS = "10.77.0.1", "10.77.0.2"
ROOM: dict[str, Any] = {
    "ALLOWED_HOSTS": f"{SERVER},127.0.0.1",
    "MAX_SESSIONS": "500",
    "MAX_SESSIONS_PER_ACCOUNT": "500",
    "MAX_CONNECTIONS_PER_ADDRESS": "1000",
    "RATE_LIMITS": "default=off",
}
LONGEST_S = 120.0


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


async def connect(count: int, address: str, key: str) -> None:
    """Begin conversations and read no more of them. Then wait for ever."""
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0)) as session:
        kept = []
        for _ in range(count):
            socket = await session.ws_connect(f"http://{address}/api-ws/v1/realtime?model=voice", autoping=False)
            assert (await socket.receive_json())["type"] == "session.created"
            kept.append(socket)
        print("connected", flush=True)
        await asyncio.Event().wait()


def clients() -> None:
    """In the second namespace, once its end of the cable is there."""
    count, address, key = sys.argv[2:]
    if address.startswith(SERVER):
        print("here", flush=True)
        assert sys.stdin.readline().strip() == "cable"
        ip("addr", "add", f"{CLIENTS}/24", "dev", "near")
        ip("link", "set", "near", "up")
    asyncio.run(connect(int(count), address, key))


class Frozen:
    """A process with clients that can be stopped in the middle."""

    def __init__(self, count: int, port: int, key: str) -> None:
        self._process = self._start((), str(count), f"127.0.0.1:{port}", key)
        self._until("connected")

    @staticmethod
    def _start(before: tuple[str, ...], *arguments: str) -> subprocess.Popen[str]:
        command = [*before, sys.executable, "-m", "tests.server.vanishing", "clients", *arguments]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _until(self, said: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == said

    def vanish(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


class FarAway(Frozen):
    """A process with clients in the second namespace, and the cable that leads there."""

    def __init__(self, count: int, port: int, key: str) -> None:
        self._process = self._start(("unshare", "--net"), str(count), f"{SERVER}:{port}", key)
        self._until("here")
        ip("link", "add", "far", "type", "veth", "peer", "name", "near", "netns", str(self._process.pid))
        ip("addr", "add", f"{SERVER}/24", "dev", "far")
        ip("link", "set", "far", "up")
        assert self._process.stdin is not None
        self._process.stdin.write("cable\n")
        self._process.stdin.flush()
        self._until("connected")

    def vanish(self) -> None:
        """Pull the cable."""
        there = f"--net=/proc/{self._process.pid}/ns/net"
        subprocess.run(["nsenter", there, "ip", "link", "set", "near", "down"], check=True)


def lab(how: str, count: int, variables: dict[str, str]) -> dict[str, Any]:
    from tests.realtime.product import Product, make_home

    if how == "cable":
        ip("link", "set", "lo", "up")
        ip("addr", "add", f"{SERVER}/32", "dev", "lo")
    with tempfile.TemporaryDirectory(prefix="vanishing-") as folder:
        arguments = ("--host", SERVER) if how == "cable" else ()
        home = make_home(Path(folder) / "home")
        product = Product(home, Path(folder) / "served", arguments=arguments, **ROOM | variables)

        def held() -> tuple[int, int]:
            """Connections and conversations."""
            unended = product.rows("SELECT id FROM realtime_realtimesession WHERE ended_at IS NULL")
            return len(product.sockets) - before, len(unended)

        try:
            before = len(product.sockets)
            key = product.keys["good"]
            gone = FarAway(count, product.port, key) if how == "cable" else Frozen(count, product.port, key)
            written_by = time.monotonic() + LONGEST_S
            while (at_first := held())[1] < count and time.monotonic() < written_by:
                time.sleep(0.1)  # a conversation's row follows its first event
            gone.vanish()
            vanished_at = time.monotonic()
            while max(left := held()) > 0 and time.monotonic() - vanished_at < LONGEST_S:
                time.sleep(0.2)
            within_s = time.monotonic() - vanished_at
            gone.end()
            ends = product.rows("SELECT DISTINCT close_code FROM realtime_realtimesession")
        finally:
            status = product.stop()
        return {
            "held": at_first,
            "left": left,
            "within_s": within_s,
            "close_codes": [row["close_code"] for row in ends],
            "status": status,
            "log": [line for line in product.log.splitlines() if " INFO " not in line],
        }


if __name__ == "__main__":
    if sys.argv[1] == "clients":
        clients()
    else:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
        django.setup()
        print(json.dumps(lab(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))), flush=True)
