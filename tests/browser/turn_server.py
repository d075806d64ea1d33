"""coturn, the relay of Debian's package of that name, on ports of its own on loopback: TCP to it, UDP from it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import aioice.stun

from tests.loop_thread import LoopThread
from tests.ports import free_port

SECRET = "what-the-relay-and-the-server-share"
START_S = 15


@dataclass(frozen=True)
class TurnServer:
    port: int
    log_path: Path

    @property
    def url(self) -> str:
        return f"turn:127.0.0.1:{self.port}?transport=tcp"

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")


class StunServer(asyncio.DatagramProtocol):
    """Tells callers the address that they have here (RFC 5389, a binding response with XOR-MAPPED-ADDRESS)."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        message = aioice.stun.parse_message(data)
        answer = aioice.stun.Message(
            message_method=message.message_method,
            message_class=aioice.stun.Class.RESPONSE,
            transaction_id=message.transaction_id,
        )
        answer.attributes["XOR-MAPPED-ADDRESS"] = addr
        self._transport.sendto(bytes(answer), addr)


@contextlib.contextmanager
def answering_stun() -> Iterator[int]:
    """The port of a STUN server for the time of a `with` block."""
    loop = LoopThread()

    async def listen() -> asyncio.DatagramTransport:
        running = asyncio.get_running_loop()
        return (await running.create_datagram_endpoint(StunServer, local_addr=("127.0.0.1", 0)))[0]

    transport = loop.run(listen())
    try:
        yield transport.get_extra_info("sockname")[1]
    finally:
        loop.call(transport.close)
        loop.close()


@contextlib.contextmanager
def relaying(place: Path) -> Iterator[TurnServer]:
    """A relay for the time of a `with` block."""
    program = shutil.which("turnserver")
    assert program is not None, "These tests need coturn (Debian: apt-get install coturn)."
    port, log_path = free_port(), place / "turnserver.log"
    options = {
        "listening-ip": "127.0.0.1",
        "listening-port": str(port),
        "relay-ip": "127.0.0.1",
        "static-auth-secret": SECRET,
        "realm": "voiceapp.example.org",
        "userdb": str(place / "turndb"),
        "pidfile": str(place / "turnserver.pid"),
        "log-file": "stdout",
    }
    switches = ["no-udp", "no-tls", "no-dtls", "no-cli", "use-auth-secret", "allow-loopback-peers", "verbose"]
    with log_path.open("w") as log:
        process = subprocess.Popen(
            [program, "-n", *(f"--{name}={value}" for name, value in options.items()), *(f"--{it}" for it in switches)],
            cwd=place,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(process, port, log_path)
        yield TurnServer(port, log_path)
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def _wait_for(process: subprocess.Popen[bytes], port: int, log_path: Path) -> None:
    deadline = time.monotonic() + START_S
    pause = threading.Event()
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"The relay does not listen:\n{log_path.read_text(errors='replace')}")
        pause.wait(0.05)
