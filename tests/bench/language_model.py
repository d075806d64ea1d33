"""`python -m tests.bench.language_model`: the built-in language model at 1, 4 and 8 conversations at once.

Each asks short questions one after the other, over HTTP as programs do, of a real server. Memory is that of the
process in which the model runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp

from tests.bench import report
from tests.bench.clips import ROOT
from tests.bench.serving import Server
from voiceapp.catalogue.defaults import SMALL_MODEL

MODEL = Path(SMALL_MODEL).stem
QUESTIONS = ("Why is the sky blue?", "Tell me about cats.", "What is a good breakfast?", "Who was Albert Einstein?")
MAX_TOKENS = 48
PATH = "/compatible-mode/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Load:
    """So many conversations at once."""

    conversations: int
    replies: int
    first_token_p50_ms: float
    first_token_p95_ms: float
    tokens_per_s: float
    """Of all conversations together."""
    tokens_per_s_each: float
    """Of one reply, from its first token on."""


def main() -> None:
    """Parse the command line, measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.language_model", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer replies")
    parser.add_argument("--output", type=Path, default=ROOT / "var" / "bench" / "language_model.json")
    chosen = parser.parse_args()
    os.environ["CHAT_ENGINE"] = "auto"
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        key = server.prepare()
        with server:
            loads = asyncio.run(_measure(server, key, rounds=1 if chosen.quick else 4))
            memory_mb = server.memory_mb("llama_cpp/child.py")
    found = {"machine": report.machine(), "loads": [asdict(load) for load in loads], "memory_mb": memory_mb}
    for load in loads:
        print(
            f"{load.conversations} at once: first token p50 {load.first_token_p50_ms:.0f} ms, "
            f"p95 {load.first_token_p95_ms:.0f} ms; {load.tokens_per_s:.0f} tokens/s in all, "
            f"{load.tokens_per_s_each:.0f} in each reply"
        )
    print(f"Memory of the model's process: {memory_mb:.0f} MB")
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(found, indent=2))


async def _measure(server: Server, key: str, *, rounds: int) -> list[Load]:
    async with aiohttp.ClientSession(base_url=server.origin, headers={"Authorization": f"Bearer {key}"}) as http:
        await _reply(http, "Hello")
        return [await _load(http, conversations, rounds) for conversations in (1, 4, 8)]


async def _load(http: aiohttp.ClientSession, conversations: int, rounds: int) -> Load:
    async def talk(number: int) -> list[tuple[float, float, int]]:
        return [
            await _reply(http, f"{QUESTIONS[(number + turn) % len(QUESTIONS)]} ({number}, {turn})")
            for turn in range(rounds * len(QUESTIONS) // (1 if conversations == 1 else 2))
        ]

    began = time.monotonic()
    talks = await asyncio.gather(*map(talk, range(conversations)))
    took_s = time.monotonic() - began
    replies = [reply for talk_ in talks for reply in talk_]
    firsts = sorted(first_s * 1000 for first_s, _, _ in replies)
    return Load(
        conversations,
        len(replies),
        statistics.median(firsts),
        firsts[round(0.95 * (len(firsts) - 1))],
        sum(tokens for _, _, tokens in replies) / took_s,
        statistics.median(tokens / max(rest_s, 1e-3) for _, rest_s, tokens in replies),
    )


async def _reply(http: aiohttp.ClientSession, said: str) -> tuple[float, float, int]:
    """Seconds until the first token, seconds from there to the end, and the tokens of one reply."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": said}], "stream": True, "max_tokens": MAX_TOKENS}
    began = time.monotonic()
    first, tokens = 0.0, 0
    async with http.post(PATH, json=body) as response:
        response.raise_for_status()
        async for line in response.content:
            if line.startswith(b"data: {") and b'"content": "' in line.replace(b'":"', b'": "'):
                first = first or time.monotonic()
                tokens += 1
    return first - began, time.monotonic() - first, tokens


if __name__ == "__main__":
    main()
