"""Playout of a service's speech that arrives faster than it is heard, by media that end here or by the caller."""

from __future__ import annotations

from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import JsonObject

USUAL_LEAD_S = 1.0
"""A service that sends no further ahead than this paces by itself, and knows what was heard."""
MOST_AHEAD_S = 120.0
"""Speech that may wait to be played: 6 MB."""


class PlayoutClock:
    """When the speech of one session is heard. Times are arguments, in seconds of one clock."""

    def __init__(self) -> None:
        self._ends_at = 0.0
        """When all that was pushed has been played."""
        self._item = ("", 0)
        """The latest item, and the number of its content part."""
        self._item_began_at = 0.0
        self._told = ("", 0)
        """The item that the service was told to truncate last, and the position in ms."""
        self.is_callers = False
        """The caller truncates items, and knows best what was heard."""

    def push(self, event: ev.AudioDelta, length_s: float, now: float) -> None:
        """Play this after everything before it."""
        begins_at = max(self._ends_at, now)
        if self._item[0] != event.item_id:
            self._item, self._item_began_at = (event.item_id, event.content_index), begins_at
        self._ends_at = begins_at + length_s

    def cut(self, now: float) -> JsonObject | None:
        """Fall silent; returns the truncation to tell the service, None when it knows what was heard."""
        ahead_s, self._ends_at = self._ends_at - now, now
        if ahead_s <= USUAL_LEAD_S or self.is_callers:
            return None
        item_id, index = self._item
        heard_ms = max(0, round((now - self._item_began_at) * 1000))
        self._told = (item_id, heard_ms)
        where = {"item_id": item_id, "content_index": index}
        return {"type": ev.ItemTruncate.type, **where, "audio_end_ms": heard_ms}

    def within_told(self, truncation: JsonObject) -> JsonObject:
        """A caller's truncation, at most up to the position that the service was told before: it takes none that
        leaves more."""
        (item_id, told_ms), end_ms = self._told, truncation.get("audio_end_ms")
        if truncation.get("item_id") != item_id or not isinstance(end_ms, int):
            return truncation
        return {**truncation, "audio_end_ms": min(end_ms, told_ms)}

    def left_s(self, now: float) -> float:
        return max(0.0, self._ends_at - now)
