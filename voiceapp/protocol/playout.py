"""Outgoing audio, paced against the clock.

Audio is handed out a small lead ahead of real time, so that an interruption cuts at once, a slow client costs a bounded
amount of memory, and the listener's position in the answer is known to within the lead.
"""

from __future__ import annotations

from collections import deque

from voiceapp.protocol.audio import AudioFormat

LEAD_MS = 300.0
PIECE_MS = 100.0
"""Least audio in one event, the last one of an answer excepted."""
QUEUE_LIMIT_MS = 10_000.0
"""How far synthesis may run ahead of sending."""


class Playout:
    """The audio of one answer on its way out."""

    def __init__(self, audio_format: AudioFormat, *, lead_ms: float = LEAD_MS) -> None:
        self._format = audio_format
        self._lead_ms = lead_ms
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._sent_bytes = 0
        self._began_at: float | None = None
        """When the listener began to hear the first byte, moved later by every pause in the supply."""
        self.is_complete = False
        """No more audio will be pushed."""
        self.is_hurried = False
        """Hand out everything at once: the session is finishing."""

    @property
    def pushed_ms(self) -> float:
        return self._format.duration_ms(self._sent_bytes + self._queued_bytes)

    @property
    def sent_ms(self) -> float:
        return self._format.duration_ms(self._sent_bytes)

    @property
    def is_empty(self) -> bool:
        return not self._queued_bytes

    @property
    def has_room(self) -> bool:
        return self._format.duration_ms(self._queued_bytes) < QUEUE_LIMIT_MS

    def push(self, pcm: bytes, now: float) -> None:
        if self._began_at is not None and self.is_empty:
            # The listener ran dry: what comes now is heard from now on, not in the past.
            self._began_at = max(self._began_at, now - self.sent_ms / 1000)
        self._queue.append(pcm)
        self._queued_bytes += len(pcm)

    def take(self, now: float) -> bytes:
        """What is due now; empty when nothing is, or when less than a piece is."""
        if self.is_empty:
            return b""
        began_at = now if self._began_at is None else self._began_at
        due_ms = (now - began_at) * 1000 + self._lead_ms - self.sent_ms
        allowed = self._queued_bytes if self.is_hurried else min(self._queued_bytes, self._format.size(due_ms + 0.5))
        is_rest = self.is_complete and allowed == self._queued_bytes
        if allowed < self._format.size(PIECE_MS) and not is_rest:
            return b""
        self._began_at = began_at
        return self._pop(allowed)

    def next_due(self) -> float | None:
        """When `take` will have something; None while there is nothing to wait for."""
        if self.is_empty:
            return None
        piece_ms = min(PIECE_MS, self._format.duration_ms(self._queued_bytes))
        if not self.is_complete and piece_ms < PIECE_MS:
            return None
        if self._began_at is None or self.is_hurried:
            return 0.0
        return self._began_at + (self.sent_ms + piece_ms - self._lead_ms) / 1000

    def heard_ms(self, now: float) -> float:
        """How much of the answer the listener has heard, if they play it as it arrives."""
        if self._began_at is None:
            return 0.0
        return min(self.sent_ms, max(0.0, (now - self._began_at) * 1000))

    def drop(self) -> None:
        """Forget what was not sent."""
        self._queue.clear()
        self._queued_bytes = 0

    def _pop(self, size: int) -> bytes:
        pieces: list[bytes] = []
        wanted = size
        while wanted:
            head = self._queue.popleft()
            if len(head) > wanted:
                self._queue.appendleft(head[wanted:])
                head = head[:wanted]
            pieces.append(head)
            wanted -= len(head)
        self._queued_bytes -= size
        self._sent_bytes += size
        return b"".join(pieces)
