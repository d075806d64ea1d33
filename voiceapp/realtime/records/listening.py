"""Operators who listen in to a conversation: its sound as it passes, once the caller was told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ
from voiceapp.event_loops import per_loop
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import PlayoutCut
from voiceapp.realtime.records.sound import SETTLED_S, BothSides, Passed

PERIOD_S = 0.2
MOST_UNREAD_S = 5.0
"""Time after which an operator whose browser reads nothing no longer listens."""
MOST_UNREAD_BYTES = 2 * 1024**2
LONGEST_S = 3600.0
"""Time after which the operator has to press the button again."""

listening: Any = per_loop(set["OperatorListener"])
"""Those who listen, in all conversations of the running event loop."""


class OperatorListener:
    """An operator who hears a conversation, from `begin` to `end`."""

    def __init__(self, requests: asyncio.Queue[Any]) -> None:
        self._requests = requests
        self._waiting: list[tuple[float, Passed]] = []
        self._waiting_bytes = 0
        self.decided, self.over = asyncio.Event(), asyncio.Event()
        """The conversation has told its caller, or refused; it is not listened to any more."""

    def ask(self) -> None:
        """Ask the conversation to tell its caller, and to `begin`."""
        self._requests.put_nowait(self)

    def begin(self, session: dict[str, Any]) -> None:
        """Hear from now on, in the formats of a session."""
        self._sound = BothSides(_clock(), ENGINE_SAMPLE_RATE_HZ)
        self._sound.read_formats(session)
        self._await_reader()

    def end(self) -> None:
        """Hear nothing more; the conversation tells its caller."""
        if not self.over.is_set():
            self.over.set()
            listening().discard(self)
            self._waiting.clear()
            self._requests.put_nowait(self)

    def add(self, event: Passed) -> None:
        if self.over.is_set():
            return
        if isinstance(event, ev.AudioAppend | ev.AudioDelta | PlayoutCut | ev.SessionUpdated):
            self._waiting.append((_clock(), event))
        if isinstance(event, ev.AudioAppend | ev.AudioDelta):
            self._waiting_bytes += len(event.audio)
            if self._waiting_bytes > MOST_UNREAD_BYTES or self._sound.is_ahead:
                self.end()

    async def read(self) -> AsyncIterator[bytes]:
        """Yield the sound as `BothSides.take` has it, until the end; ends when it is not read on."""
        until = _clock() + LONGEST_S
        try:
            while not self.over.is_set() and _clock() < until:
                self._unread.cancel()
                self._await_reader()
                await asyncio.sleep(PERIOD_S)
                waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
                for at, event in waiting:
                    self._sound.add(at, event)
                if count := self._sound.count(_clock() - SETTLED_S):
                    yield self._sound.take(count)
        finally:
            self._unread.cancel()
            self.end()

    def _await_reader(self) -> None:
        self._unread = asyncio.get_running_loop().call_later(MOST_UNREAD_S, self.end)


def _clock() -> float:
    return asyncio.get_running_loop().time()
