"""`python -m tests.bench`: start the real server, talk to it, and print how it did. `--quick` takes a minute."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from tests.bench import clips, report, talking
from tests.bench.clips import ROOT, Clip
from tests.bench.report import Conversation
from tests.bench.serving import Cost, Server
from tests.mind import FIRST_TOKEN_S, WORDS_PER_S

QUICK_CLIP_S = 4.0
BEGIN_OVER_S = (0.0, 7.0)
"""All together, which is the worst, and one after the other, as callers do."""
TYPED = 10
"""Questions that are typed to a model elsewhere."""
WATCH_EVERY_S = 3.0
TURNS_IN_ALL = 56
"""Of several sessions together, at least: the p95 is then not the slowest turn."""


def main() -> None:
    """Parse the command line and run what it asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute instead of seven: fewer and shorter turns")
    parser.add_argument("--sessions", type=int, nargs="+", help="conversations at once, one run each (1 8 16)")
    parser.add_argument("--begin-over", type=float, nargs="+", help="s within which several begin, one run each (0 7)")
    parser.add_argument("--turns", type=int, help="clips that each session says")
    parser.add_argument("--code", type=Path, default=ROOT, help="another working copy whose server is measured")
    parser.add_argument("--far", action="store_true", help="replies by a stub with a hosted model's timing")
    parser.add_argument("--output", type=Path, default=ROOT / "var" / "bench" / "latest.json")
    chosen = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")  # for the synthesizer that makes missing speech
    with tempfile.TemporaryDirectory(prefix="voiceapp-bench-") as folder:
        if not chosen.far:
            _measure(chosen, Path(folder))
            return
        with far_mind() as address:
            os.environ |= {"CHAT_BASE_URL": address, "CHAT_READS_DOCUMENTS": "0"}
            _measure(chosen, Path(folder))
            with urllib.request.urlopen(f"{address}/asked") as answer:
                asked = int(answer.read()) - TYPED
        rows = json.loads(chosen.output.read_text())["conversations"]
        turns = sum(len(turn["heard"]) for row in rows for turn in row["per_turn"])
        print(f"Replies by a stub: first token after {FIRST_TOKEN_S * 1000:.0f} ms, {WORDS_PER_S:.0f} words a second")
        print(f"{asked} calls for {turns} spoken turns: {asked / turns:.2f} a turn")


@contextmanager
def far_mind() -> Iterator[str]:
    """The address of the stub, in a process of its own, while the block lasts."""
    process = subprocess.Popen([sys.executable, "-m", "tests.mind"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def _measure(chosen: argparse.Namespace, var_dir: Path) -> None:
    facts = report.machine()
    source, said = clips.load()
    if chosen.quick:
        said = [clip for clip in said if clip.seconds < QUICK_CLIP_S]
    report.print_machine(facts, source)

    server = Server(var_dir, code_dir=chosen.code)
    key = server.prepare()
    with server:
        first_start_s = server.ready_s
    found: list[Conversation] = []
    server = Server(var_dir, code_dir=chosen.code)
    with server:
        print(f"Start to /readyz 200: {first_start_s:.1f} s the first time, {server.ready_s:.1f} s the second\n")
        idle = server.cost()
        for callers in chosen.sessions or ((1, 16) if chosen.quick else (1, 8, 16)):
            turns = chosen.turns or _turns(callers, len(said), is_quick=chosen.quick)
            for begin_over_s in chosen.begin_over or (BEGIN_OVER_S if callers > 1 else BEGIN_OVER_S[:1]):
                found.append(asyncio.run(_talk(server, key, said, callers, turns, begin_over_s)))
        typed = asyncio.run(talking.typed(server.url, key, TYPED)) if chosen.far else []
    report.print_conversations(found)
    if typed:
        print(f"Typed, to the first sound: {report.percentile(typed, 50):.0f} / {report.percentile(typed, 95):.0f} ms")
    report.print_memory(idle, found)
    figures = {
        "machine": facts,
        "speech": source,
        "start_s": {"first": first_start_s, "second": server.ready_s},
        "idle": asdict(idle),
        "conversations": [asdict(row) for row in found],
        "added_session_mb": report.added_session_mb(found),
    }
    report.write(chosen.output, figures)
    print(f"All figures, turn by turn: {chosen.output}")


def _turns(callers: int, clip_count: int, *, is_quick: bool) -> int:
    """Clips each of `callers` says: every clip twice in all for one, enough for a 95th percentile for many."""
    if callers == 1:
        return 8 if is_quick else 2 * clip_count
    return 2 if is_quick else max(5, -(-TURNS_IN_ALL // callers))


async def _talk(
    server: Server, key: str, said: Sequence[Clip], callers: int, turns: int, begin_over_s: float
) -> Conversation:
    costs: list[Cost] = [server.cost()]

    async def watch() -> None:
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            # In a thread: the kernel takes a while to add up the pages, and the callers share this event loop.
            costs.append(await asyncio.to_thread(server.cost))

    watching = asyncio.create_task(watch())
    everybody = await talking.converse(
        server.url, key, said, callers=callers, turns_each=turns, begin_over_s=begin_over_s
    )
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    full = max(costs, key=lambda cost: cost.pss_mb)
    return report.conversation(everybody, begin_over_s, costs[0], server.cost(), full)


if __name__ == "__main__":
    main()
