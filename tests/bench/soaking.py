"""`python -m tests.bench.soaking`: talk to servers for a while, one call after the other, and print how they grow."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.bench import clips, report
from tests.bench.clips import ROOT, Clip
from tests.bench.serving import Server
from tests.bench.talking import Caller, Turn

LOOK_EVERY_S = 10.0
HANGS_UP = 0.2
"""Share of the calls that the caller leaves in the middle of the first turn."""
METRICS_TOKEN = "soak"
WARM_UP = 1 / 3
"""Share of the time that counts for no slope: caches fill."""


@dataclass
class Soak:
    """What a run saw."""

    turns: list[Turn] = field(default_factory=list)
    calls: int = 0
    failed: list[str] = field(default_factory=list)
    looks: list[tuple[float, float, int, int]] = field(default_factory=list)
    """Seconds; MB, open files and tasks of the event loops, of all servers together."""


def main() -> None:
    """Parse the command line, and soak as many servers as it says, one run after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soaking", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="of each run (30)")
    parser.add_argument("--processes", type=int, nargs="+", default=[1], help="web processes, one run each (1)")
    parser.add_argument("--callers", type=int, default=8, help="at once, over all processes (8)")
    parser.add_argument("--apart", action="store_true", help="the models run in another process, for all of them")
    chosen = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")  # for the synthesizer that makes missing speech
    source, said = clips.load()
    report.print_machine(report.machine(), source)
    print("processes  calls  failed  turns  p50 ms  p95 ms  CPU s/min  MB, files, tasks: first, last, growth an hour")
    for processes in chosen.processes:
        with serving(processes, is_apart=chosen.apart) as (servers, key):
            before = [server.cost() for server in servers]
            soak = asyncio.run(_soak(servers[:processes], key, said, chosen.callers, chosen.minutes * 60))
            cpu_s = sum(server.cost().cpu_s - cost.cpu_s for server, cost in zip(servers, before, strict=True))
        _print(processes, soak, cpu_s / chosen.minutes / chosen.callers)


@contextmanager
def serving(count: int, *, is_apart: bool) -> Iterator[tuple[list[Server], str]]:
    """Serve with so many web processes on one database; where models run apart, the server of those comes last."""
    with tempfile.TemporaryDirectory(prefix="voiceapp-soak-") as folder, ExitStack() as running:
        variables = {"METRICS_TOKEN": METRICS_TOKEN}
        engines = []
        if is_apart:
            engine = Server(Path(folder, "engines"))
            engine_key = engine.prepare()
            engines.append(running.enter_context(engine))
            variables |= {
                "EMBEDDED_MODELS": "0",
                "UPSTREAM_BASE_URL": engine.origin,
                "UPSTREAM_API_KEY": engine_key,
                "UPSTREAM_REALTIME_MODEL": "voice",
                "TTS_BASE_URL": f"{engine.origin}/v1",
                "TTS_API_KEY": engine_key,
                "TTS_MODEL": "tts-1",
            }
        webs = [Server(Path(folder, "web"), code_dir=ROOT, **variables) for _ in range(count)]
        key = webs[0].prepare()
        yield [*(running.enter_context(web) for web in webs), *engines], key


async def _soak(servers: Sequence[Server], key: str, said: Sequence[Clip], callers: int, seconds: float) -> Soak:
    found, begun = Soak(), time.monotonic()

    async def call_on(number: int) -> None:
        chance = random.Random(number)
        while time.monotonic() < begun + seconds:
            caller = Caller(servers[number % len(servers)].url, key, seed=chance.randrange(1000))
            found.calls += 1
            try:
                async with asyncio.timeout(chance.uniform(1, 3) if chance.random() < HANGS_UP else None):
                    await caller.talk(chance.sample(said, 2))
            except TimeoutError:
                pass  # hung up
            except (OSError, ExceptionGroup) as error:
                found.failed.append(repr(error))
            found.turns += caller.turns

    async def look() -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            found.looks.append((time.monotonic() - begun, *await asyncio.to_thread(_held, servers)))

    looking = asyncio.create_task(look())
    async with asyncio.TaskGroup() as group:
        for number in range(callers):
            group.create_task(call_on(number))
    looking.cancel()
    return found


def _held(servers: Sequence[Server]) -> tuple[float, int, int]:
    files = sum(len(os.listdir(f"/proc/{server.pid}/fd")) for server in servers)
    return sum(server.cost().pss_mb for server in servers), files, sum(map(_tasks, servers))


def _tasks(server: Server) -> int:
    request = urllib.request.Request(f"{server.origin}/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
    with urllib.request.urlopen(request) as response:
        found = re.search(r"^voiceapp_event_loop_tasks (\S+)", response.read().decode(), re.MULTILINE)
    assert found
    return int(float(found[1]))


def _print(processes: int, soak: Soak, cpu_s: float) -> None:
    times = [turn.answered_ms for turn in soak.turns if turn.answered_ms is not None]
    late = np.array([look for look in soak.looks if look[0] > WARM_UP * soak.looks[-1][0]])
    growth = [f"{late[0, column]:.0f} {late[-1, column]:.0f} {_an_hour(late, column):+.1f}" for column in (1, 2, 3)]
    latencies = f"{report.percentile(times, 50):7.0f} {report.percentile(times, 95):7.0f}"
    counts = f"{processes:9d} {soak.calls:6d} {len(soak.failed):7d} {len(soak.turns):6d}"
    print(f"{counts} {latencies} {cpu_s:10.2f}  {'; '.join(growth)}")
    for failure in sorted(set(soak.failed))[:5]:
        print("  ", failure)


def _an_hour(looks: np.ndarray, column: int) -> float:
    """Growth in an hour, by the line of least squares."""
    return float(np.polyfit(looks[:, 0], looks[:, column], 1)[0] * 3600)


if __name__ == "__main__":
    main()
