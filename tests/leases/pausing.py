"""A kind of task that only takes its time."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from voiceapp.accounts.auth import Caller
from voiceapp.http.schemas import Schema
from voiceapp.tasks.kinds import PartResult, Payload
from voiceapp.tasks.work.context import TaskContext

logger = logging.getLogger(__name__)

SECRETS = "key sk-abcdefghijklmnop1234 and Bearer abcdefghijkl"


class Body(Schema):
    pause_s: float
    parts: int = 1


class Pausing:
    """A `Kind`."""

    path = "test/pausing/pausing"
    title = description = "Takes its time."
    body = Body
    time_limit_s = 60.0
    max_attempts = 20
    parallel = 2
    has_results = True

    async def accept(self, caller: Caller, body: Body) -> Payload:
        return Payload("none", parts=[{"pause_s": body.pause_s}] * body.parts)

    async def run(self, part: TaskContext) -> PartResult:
        logger.warning("At work with %s", SECRETS)
        _note(f"{part.task_id} {time.time()}")
        await asyncio.sleep(part.order["pause_s"])
        return PartResult({"process": os.getpid()}, {"pauses": 1})

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"results": list(results)}


def _note(line: str) -> None:
    with open(settings.RUNS_FILE, "a") as runs:
        runs.write(f"{line}\n")
