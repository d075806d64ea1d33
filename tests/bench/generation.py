"""`python -m tests.bench.generation`: what the server adds to a chat call.

A stub backend in a process of its own, no model, is asked directly and through the real server in turns, over
connections that stay open, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.bench import report
from tests.bench.clips import ROOT
from tests.bench.serving import Server

TOKENS = 16
LONG_TOKENS = 2000
WARM_UP = 30
AIM_P50_MS, AIM_P95_MS = 3.0, 8.0
NATIVE = "/api/v1/services/aigc/text-generation/generation"
COMPATIBLE = "/compatible-mode/v1/chat/completions"
STYLES = ("compatible", "native", "service")
"""The last is the compatible style of a model that a service with the same interface serves."""
MESSAGES = [{"role": "user", "content": "Say something."}]


@dataclass(frozen=True, slots=True)
class Overhead:
    """Milliseconds that the server added, by call; the same call asked of the backend directly is subtracted."""

    style: str
    direct_p50_ms: float
    added_p50_ms: float
    added_p95_ms: float
    first_added_p50_ms: float
    """Until the first word of a streamed answer."""
    first_added_p95_ms: float
    events_per_s: float
    """Of one streamed answer, as fast as it goes."""


def main() -> None:
    """Parse the command line, measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.generation", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer calls")
    parser.add_argument("--output", type=Path, default=ROOT / "var" / "bench" / "generation.json")
    chosen = parser.parse_args()
    facts = report.machine()
    report.print_machine(facts, "none")
    with stub_backend() as backend:
        os.environ |= {"CHAT_BASE_URL": f"{backend}/v1", "RATE_LIMITS": "default=off"}
        os.environ |= {"UPSTREAM_BASE_URL": backend, "UPSTREAM_CHAT_MODELS": "far:stub"}
        with tempfile.TemporaryDirectory(prefix="voiceapp-bench-") as folder:
            server = Server(Path(folder))
            key = server.prepare()
            with server:
                calls = 100 if chosen.quick else 400
                found = asyncio.run(_measure(f"http://127.0.0.1:{server.port}", backend, key, calls))
    _print(found)
    report.write(chosen.output, {"machine": facts, "overhead": [asdict(row) for row in found]})


@contextmanager
def stub_backend() -> Iterator[str]:
    """The address of a stub backend, while the block lasts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.stub_chat"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        while not (address := re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())):
            assert process.poll() is None, "the stub backend ended"
        yield address[0]
    finally:
        process.terminate()
        process.wait()


async def _measure(server: str, backend: str, key: str, calls: int) -> list[Overhead]:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        return [await _style(session, server, backend, style, calls) for style in STYLES]


async def _style(session: aiohttp.ClientSession, server: str, backend: str, style: str, calls: int) -> Overhead:
    direct = f"{backend}/v1/chat/completions"
    whole, streamed = _request(server, style, stream=False), _request(server, style, stream=True)
    asked: tuple[str, dict[str, Any], dict[str, str]] = (
        direct,
        {"model": "stub", "messages": MESSAGES, "max_tokens": TOKENS, "stream": True},
        {},
    )
    for _ in range(WARM_UP):
        for request in (asked, whole, streamed):
            await _call(session, *request)
    times: list[tuple[float, float]] = []
    firsts: list[tuple[float, float]] = []
    for _ in range(calls):
        times.append(((await _call(session, *asked))[1], (await _call(session, *whole))[1]))
        firsts.append(((await _call(session, *asked))[0], (await _call(session, *streamed))[0]))
    address, body, headers = _request(server, style, stream=True, tokens=LONG_TOKENS)
    begun = time.perf_counter()
    await _call(session, address, body, headers)
    usual = report.percentile([own for own, _ in times], 50)
    usual_first = report.percentile([own for own, _ in firsts], 50)
    return Overhead(
        style,
        usual,
        # Medians for the one asked directly: single pairs would add its jitter to ours.
        report.percentile([through - usual for _, through in times], 50),
        report.percentile([through - usual for _, through in times], 95),
        report.percentile([through - usual_first for _, through in firsts], 50),
        report.percentile([through - usual_first for _, through in firsts], 95),
        LONG_TOKENS / (time.perf_counter() - begun),
    )


def _request(
    server: str, style: str, *, stream: bool, tokens: int = TOKENS
) -> tuple[str, dict[str, Any], dict[str, str]]:
    if style != "native":
        model = "far" if style == "service" else "qwen-plus"
        body = {"model": model, "messages": MESSAGES, "max_tokens": tokens, "stream": stream}
        return server + COMPATIBLE, body, {}
    parameters = {"result_format": "message", "incremental_output": True, "max_tokens": tokens}
    body = {"model": "qwen-plus", "input": {"messages": MESSAGES}, "parameters": parameters}
    return server + NATIVE, body, {"X-DashScope-SSE": "enable"} if stream else {}


async def _call(
    session: aiohttp.ClientSession, address: str, body: dict[str, Any], headers: dict[str, str]
) -> tuple[float, float]:
    """Milliseconds until the first bytes of the answer, and until its end."""
    begun = time.perf_counter()
    async with session.post(address, json=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        await response.content.readany()
        first = time.perf_counter()
        await response.read()
    return (first - begun) * 1000, (time.perf_counter() - begun) * 1000


def _print(found: list[Overhead]) -> None:
    print("Chat through the server, against the same stub backend asked directly")
    print(f"aim: added p50 <= {AIM_P50_MS:g} ms, p95 <= {AIM_P95_MS:g} ms")
    print("style       direct p50  added p50  added p95  first added p50      p95   events/s")
    for row in found:
        print(
            f"{row.style:10} {row.direct_p50_ms:11.2f} {row.added_p50_ms:10.2f} "
            f"{row.added_p95_ms:10.2f} {row.first_added_p50_ms:16.2f} {row.first_added_p95_ms:8.2f} "
            f"{row.events_per_s:10.0f}"
        )
    print()


if __name__ == "__main__":
    main()
