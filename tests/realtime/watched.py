"""The product with a watch over its event loop: how long one thing kept all others waiting.

Served in the place of the product by `DJANGO_SETTINGS_MODULE=tests.realtime.watched_settings`. Each request of
`/stalls` ends a measurement and begins the next one.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path

from voiceapp.asgi import application as product
from voiceapp.http.refusals import Receive, Scope, Send, json_headers

EVERY_S = 0.005


class LoopWatch:
    """Wakes again and again, and notes how late it was."""

    def __init__(self) -> None:
        self._watching: asyncio.Task[None] | None = None
        self._longest_s = 0.0

    def begin_anew(self) -> float:
        """The longest stall since the last call, in seconds."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="loop watch")
        longest_s, self._longest_s = self._longest_s, 0.0
        return longest_s

    async def _watch(self) -> None:
        while True:
            begun, kept_waiting = time.monotonic(), waited_for_a_core_s()
            await asyncio.sleep(EVERY_S)
            late_s = time.monotonic() - begun - EVERY_S - (waited_for_a_core_s() - kept_waiting)
            self._longest_s = max(self._longest_s, late_s)


def waited_for_a_core_s() -> float:
    """For how long this thread was ready and no core was free: the fault of a busy machine, and not of the program.

    The kernel's documentation, scheduler/sched-stats: the second field is the time spent waiting to run, in ns.
    """
    return int(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()[1]) / 1e9


watch = LoopWatch()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope.get("path") != "/stalls":
        await product(scope, receive, send)
        return
    body = json.dumps({"longest_ms": watch.begin_anew() * 1000}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": json_headers(body, "stalls")})
    await send({"type": "http.response.body", "body": body})
