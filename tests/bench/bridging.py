"""`python -m tests.bench.bridging`: what passing events on to a service elsewhere costs, beside a proxy that does less.

Each session appends 50 ms of audio 20 times a second, and the service says the same as speech: the latency is that of
the way there and back, and what is added is the difference to `direct`. `read` is a session that can be resumed, whose
events are read and written anew. Memory is what each of `IDLE_SESSIONS` silent sessions adds to the process on the way
(PSS), beside a few that are open already.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import websockets

from tests.bench.bare_proxy import PATH
from tests.bench.clips import ROOT
from tests.bench.report import percentile
from tests.bench.serving import Server, process_cost
from tests.ports import free_port

FRAMES_PER_S = 20
FRAME = base64.b64encode(os.urandom(1600)).decode()
APPEND = f'{{"type":"input_audio_buffer.append","audio":"{FRAME}"}}'
START_S = 30.0
RESUMABLE = "&resume=on"
FEW_SESSIONS = 100
"""Open before memory is measured: what the first ones load is not counted."""
IDLE_SESSIONS = 200
SETTLE_S = 5.0
"""What the sessions leave is written meanwhile."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a caller reaches the service, and the process on the way."""

    name: str
    url: str
    pid: int | None
    key: str = ""


def main() -> None:
    """Measure every way."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bridging", description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--ways", nargs="+", default=["direct", "bare", "ours", "read"], help="which of them")
    chosen = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    service_port = free_port()
    with _running("-m", "tests.bench.bare_proxy", "service", str(service_port), port=service_port):
        _compare(service_port, chosen)


def _compare(service_port: int, chosen: argparse.Namespace) -> None:
    print(
        "way                   sessions  us CPU/frame  sessions/core  kB/session  p50 ms   p99 ms  set-up p50 ms   p99"
    )
    if "direct" in chosen.ways:
        _measure(Way("direct", f"ws://127.0.0.1:{service_port}{PATH}?model=bench", None), chosen)
    if "bare" in chosen.ways:
        port = free_port()
        command = ("-m", "tests.bench.bare_proxy", "proxy", str(port), str(service_port))
        with _running(*command, port=port) as pid:
            _measure(Way("bare", f"ws://127.0.0.1:{port}{PATH}?model=bench", pid), chosen)
    with _ours(service_port) as way:
        if "ours" in chosen.ways:
            _measure(way, chosen)
        if "read" in chosen.ways:
            _measure(replace(way, name=f"{way.name}, read", url=way.url + RESUMABLE), chosen)


@contextlib.contextmanager
def _ours(service_port: int) -> Iterator[Way]:
    with tempfile.TemporaryDirectory(prefix="voiceapp-bench-") as folder:
        ours = Server(
            Path(folder),
            UPSTREAM_BASE_URL=f"http://127.0.0.1:{service_port}",
            UPSTREAM_REALTIME_MODEL="bench",
            DEFAULT_VOICE="en-us",
        )
        key = ours.prepare()
        with ours:
            yield Way("ours", f"ws://127.0.0.1:{ours.port}{PATH}?model=upstream", ours.pid, key)


@contextlib.contextmanager
def _running(*command: str, port: int) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, command
            assert time.monotonic() < deadline, command
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _measure(way: Way, chosen: argparse.Namespace) -> None:
    held_kb = asyncio.run(_held_kb(way))
    for sessions in chosen.sessions:
        asyncio.run(_carry(way, sessions, chosen.seconds, held_kb))


async def _held_kb(way: Way) -> float:
    """What a silent session adds to the memory of the process on the way."""
    if way.pid is None:
        return 0.0
    held_mb: list[float] = []
    async with contextlib.AsyncExitStack() as stack:
        for sessions in (FEW_SESSIONS, IDLE_SESSIONS):
            for _ in range(sessions):
                connection = await stack.enter_async_context(_connected(way))
                await connection.recv()
            await asyncio.sleep(1.0)
            held_mb.append(process_cost(way.pid).pss_mb)
    await asyncio.sleep(SETTLE_S)
    return (held_mb[1] - held_mb[0]) * 1024 / IDLE_SESSIONS


async def _carry(way: Way, sessions: int, seconds: float, held_kb: float) -> None:
    trips: list[float] = []
    set_up: list[float] = []
    is_measured = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        callers = [
            group.create_task(_caller(way, trips, set_up, is_measured, number / sessions / FRAMES_PER_S))
            for number in range(sessions)
        ]
        await asyncio.sleep(2.0 + sessions / 50)
        before = process_cost(way.pid) if way.pid else None
        is_measured.set()
        await asyncio.sleep(seconds)
        is_measured.clear()
        after = process_cost(way.pid) if way.pid else None
        frames = 2 * len(trips)
        for caller in callers:
            caller.cancel()
    us = (after.cpu_s - before.cpu_s) / frames * 1e6 if before and after else 0.0
    per_core = int(1e6 / us / (2 * FRAMES_PER_S)) if us else 0
    times = (percentile(trips, 50), percentile(trips, 99), percentile(set_up, 50), percentile(set_up, 99))
    shown = f"{held_kb:11.0f} {times[0]:8.2f} {times[1]:8.2f} {times[2]:14.1f} {times[3]:6.1f}"
    print(f"{way.name:22}{sessions:8d} {us:13.0f} {per_core:14d} {shown}", flush=True)


def _connected(way: Way) -> websockets.connect:
    headers = {"Authorization": f"Bearer {way.key}"} if way.key else {}
    return websockets.connect(
        way.url, additional_headers=headers, ping_interval=None, compression=None, max_size=None, proxy=None
    )


async def _caller(
    way: Way, trips: list[float], set_up: list[float], is_measured: asyncio.Event, after_s: float
) -> None:
    await asyncio.sleep(after_s * FRAMES_PER_S)  # one after the other
    begun = time.monotonic()
    async with _connected(way) as connection:
        await connection.recv()
        set_up.append((time.monotonic() - begun) * 1000)
        sent: list[float] = []

        async def speak() -> None:
            due = time.monotonic() + after_s
            while True:
                due += 1 / FRAMES_PER_S
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                sent.append(time.monotonic())
                await connection.send(APPEND)

        async with asyncio.TaskGroup() as group:
            group.create_task(speak())
            async for text in connection:
                if "response.audio.delta" in str(text)[:80]:
                    at = sent.pop(0)
                    if is_measured.is_set():
                        trips.append((time.monotonic() - at) * 1000)


if __name__ == "__main__":
    main()
