"""`manage.py replay FILE`: a recorded conversation, said again to the engines of today."""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import textwrap
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from voiceapp.engines.models import providers
from voiceapp.errors import VoiceError
from voiceapp.protocol.work import TurnEnded
from voiceapp.realtime.records.replay import Clock, Pair, Recorded, compared, replay

ROWS = {
    "user_text": "caller",
    "assistant_text": "reply",
    "end_of_turn_ms": "end of turn (ms)",
    "recognition_ms": "recognition (ms)",
    "first_token_ms": "first word (ms)",
    "first_audio_ms": "first sound (ms)",
}
"""Parts of a turn that are shown, as the page of a conversation names them."""


class Command(BaseCommand):
    help = (
        "Say what the caller of a recorded conversation said to the engines of today, and show both side by side. Ends "
        "with 1 if the caller's words or turns differ; replies and latencies are only shown. Functions of the client, "
        "and what it did to items by their ids, are not played again."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the zip file that the page of a conversation offers")

    def handle(self, *, file: Path, **options: Any) -> None:
        logging.disable(logging.INFO)
        try:
            recorded = Recorded.read(file)
            with asyncio.Runner(loop_factory=Clock) as runner:
                now = [asdict(turn) for turn in runner.run(_run(recorded, runner.get_loop()))]
        except VoiceError as error:
            raise CommandError(error.message) from error
        finally:
            logging.disable(logging.NOTSET)
        pairs = compared(recorded.turns, now)
        for place, pair in enumerate(pairs, start=1):
            self._show(f"{'≠' if pair.differs else '='} turn {place}", pair)
        for name, title in list(ROWS.items())[2:]:
            medians = [_median(turns, name) for turns in (recorded.turns, now)]
            self.stdout.write(f"{title}, median of spoken turns: {medians[0]} before, {medians[1]} now")
        differing = sum(pair.differs for pair in pairs)
        self.stdout.write(f"{len(recorded.turns)} turns before, {len(now)} now; {differing} differ.")
        if differing:
            raise CommandError("The caller was understood otherwise.", returncode=1)

    def _show(self, heading: str, pair: Pair) -> None:
        width = max(20, (shutil.get_terminal_size().columns - 22) // 2)
        self.stdout.write(f"{heading:20} {'before':{width}} now")
        for name, title in ROWS.items():
            cells = [textwrap.wrap(str("" if side is None else side[name] or ""), width - 1) for side in pair]
            for number, (before, now) in enumerate(zip_longest(*cells, fillvalue="")):
                self.stdout.write(f"  {'' if number else title:18} {before:{width}} {now}".rstrip())


def _median(turns: list[dict[str, Any]], name: str) -> str:
    times = [turn[name] for turn in turns if turn["is_spoken"] and turn[name] is not None]
    return f"{median(times):.0f}" if times else "–"


async def _run(recorded: Recorded, clock: Any) -> list[TurnEnded]:
    try:
        await providers.warm_up()
        return await replay(recorded, clock)
    finally:
        await providers.close()
