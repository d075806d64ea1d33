"""What of a service's speech was played where some services send it faster than it is heard: by media that end here, or
by a caller who plays it as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
        if ahead_s <= USUAL_LEAD_S:
            return None
        item_id, index = self._item
        heard_ms = max(0, round((now - self._item_began_at) * 1000))
        where = {"item_id": item_id, "content_index": index}
        return {"type": ev.ItemTruncate.type, **where, "audio_end_ms": heard_ms}

    async def wait_for_room(self) -> None:
        """Return when not too much waits to be played."""
        ahead_s = self._ends_at - self._now()
        if ahead_s > MOST_AHEAD_S:
            await asyncio.sleep(ahead_s - MOST_AHEAD_S)
