"""Everything that the server tries to reach and to write, in a network that leads nowhere: `python -m` runs it there.

Where the system grants no namespaces, only files are looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import django

from tests.server.test_vanishing import PATH, new_network
from tests.serving import ROOT

PATIENCE_S = 250.0
OWN = "10.78.0.1"
EVERY_PROTOCOL = 3
"""`ETH_P_ALL` of Linux."""


def test_no_name_is_looked_up_no_packet_leaves_and_no_file_is_left_outside(tmp_path: Path) -> None:
    """`CI` is removed: libraries that report to their makers are silent where it is set."""
    for name in ("home", "temporary"):
        (tmp_path / name).mkdir()
    apart = new_network()
    done = subprocess.run(
        [*apart, sys.executable, "-m", "tests.server.test_offline", str(tmp_path), "apart" if apart else "here"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
        | {"PATH": PATH, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "temporary")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []
    outside = [str(path) for name in ("home", "temporary") for path in (tmp_path / name).rglob("*")]
    assert outside == []


class Recorder:
    """A resolver and a route that lead nowhere, which note what is sent there."""

    def __init__(self) -> None:
        for command in (
            "link set lo up",
            "link add far type veth peer name near",
            f"addr add {OWN}/24 dev far",
            "link set far arp off up",
            "link set near up",
            "route add default dev far",
        ):
            subprocess.run(["ip", *command.split()], check=True)
        self._resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._resolver.bind(("", 53))
        self._way_out = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
        self._way_out.bind(("far", EVERY_PROTOCOL))

    def noted(self) -> list[str]:
        """Destinations of the packets that left, and the queries to a resolver of this computer."""
        found = {f"query {query!r}" for query in _received(self._resolver)}
        for packet in _received(self._way_out):
            is_ipv4 = packet[0] >> 4 == 4
            protocol, address = (packet[9], packet[16:20]) if is_ipv4 else (packet[6], packet[24:40])
            if protocol in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
                found.add(f"packet to {ipaddress.ip_address(address)}: {packet!r}")
        return sorted(found)


def _received(source: socket.socket) -> Iterator[bytes]:
    source.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            yield source.recv(65_536)


async def use(folder: Path) -> None:
    """Start the server, converse with it over a socket and in a call, and have it do a task."""
    from tests.outages.conftest import accepted, until_over
    from tests.realtime.product import Product, make_home
    from tests.realtime.talker import call
    from tests.realtime.webrtc.caller import calling

    # Of its own, and no fork of a process that has imported before: so it is with a variable that Python reads.
    product = Product(make_home(folder / "prepared"), folder / "served", PYTHONUNBUFFERED="1")
    try:
        async with call(product.url, product.keys["good"]) as talker:
            await talker.ask("Spell necessary.")
            await talker.wait("response.done")
        async with calling(product.origin, product.keys["good"]) as caller:
            await caller.ask("Spell necessary.")
            await caller.wait("response.done")
        await until_over(product, [accepted(product)])
    finally:
        assert product.stop() == 0, product.log


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    recorder = Recorder() if sys.argv[2] == "apart" else None
    django.setup()
    asyncio.run(use(Path(sys.argv[1])))
    print(json.dumps(recorder.noted() if recorder else []), flush=True)
