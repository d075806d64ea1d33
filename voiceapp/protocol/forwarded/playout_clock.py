"""What of a service's speech was played where some services send it faster than it is heard: by media that end here, or
by a caller who plays it as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from voiceapp.protocol import events as ev

USUAL_LEAD_S = 1.0
"""A service that sends no further ahead than this paces by itself, and knows what was heard."""
MOST_AHEAD_S = 120.0
"""Speech that may wait here to be played: 6 MB."""


class Playing:
    """The clock of one session's speech."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._ends_at = 0.0
        """When all that was pushed has been played."""
        self._item = ("", 0)
        """The latest item, and the number of its content part."""
        self._item_began_at = 0.0
        self._told = ("", 0)
        """The item that the service was told to truncate last, and where, in ms."""
        self.is_callers = False
        """The caller truncates, who knows best what was heard."""
        self._was_cut = asyncio.Event()

    def push(self, event: ev.AudioDelta, length_s: float) -> None:
        """Play this after everything before it."""
        begins_at = max(self._ends_at, self._now())
        if self._item[0] != event.item_id:
            self._item, self._item_began_at = (event.item_id, event.content_index), begins_at
        self._ends_at = begins_at + length_s

    def cut(self) -> dict[str, Any] | None:
        """Fall silent; what the service has to be told of it, where it does not know itself."""
        now = self._now()
        ahead_s, self._ends_at = self._ends_at - now, now
        self._was_cut.set()
        if ahead_s <= USUAL_LEAD_S or self.is_callers:
            return None
        item_id, index = self._item
        heard_ms = max(0, round((now - self._item_began_at) * 1000))
        self._told = (item_id, heard_ms)
        where = {"item_id": item_id, "content_index": index}
        return {"type": ev.ItemTruncate.type, **where, "audio_end_ms": heard_ms}

    def with_known(self, truncation: dict[str, Any]) -> dict[str, Any]:
        """A caller's truncation, where the service was told of it before: it takes none that leaves more."""
        (item_id, told_ms), end_ms = self._told, truncation.get("audio_end_ms")
        if truncation.get("item_id") != item_id or not isinstance(end_ms, int):
            return truncation
        return {**truncation, "audio_end_ms": min(end_ms, told_ms)}

    @property
    def left_s(self) -> float:
        """How long it plays until all that was pushed has been played."""
        return max(0.0, self._ends_at - self._now())

    async def wait_end(self) -> None:
        """Return when nothing is played any more."""
        while (left_s := self.left_s) > 0:
            self._was_cut.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._was_cut.wait()

    async def wait_for_room(self) -> None:
        """Return when not too much waits to be played."""
        ahead_s = self._ends_at - self._now()
        if ahead_s > MOST_AHEAD_S:
            await asyncio.sleep(ahead_s - MOST_AHEAD_S)
