"""Outgoing audio, paced against the clock.

Audio is handed out a small lead ahead of real time, so that an interruption cuts at once, a slow client costs a bounded
amount of memory, and the listener's position in the reply is known to within the lead.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from voiceapp.protocol.audio import AudioFormat

LEAD_MS = 300.0
PIECE_MS = 100.0
"""Least audio in one event, the last one of a response excepted."""
QUEUE_LIMIT_MS = 1_500.0
"""Lead of synthesis over sending: interrupted speech was made for nothing, and others wait for theirs."""
KEPT_MS = 3_000.0
"""Sent audio that is kept of a reply, which may go on from earlier: the longest duck, the lead, and the word
before."""
NOTICED_MS = 100.0
"""A listener is so much later than is known here, at least: what they heard of a reply when it was ducked."""
LONGEST_WORD_MS = 600.0
LEVEL_MS = 10.0
QUIET_SHARE = 0.1
"""Loudness between two words, as a share of the loudness around it."""
ROUNDING_MS = 0.5
"""A timer that fires when a piece is due finds it due, whatever the clock's floating point did to it."""


class Playout:
    """The audio of one response on its way out."""

    def __init__(self, audio_format: AudioFormat, *, lead_ms: float = LEAD_MS, not_before: float = -math.inf) -> None:
        """`not_before` is when the listener has heard the response before: until then this one would only wait."""
        self._sent = bytearray()
        """The latest of what was sent."""
        self._kept_bytes = audio_format.size(KEPT_MS)
        self._is_held = False
        self._format = audio_format
        self._lead_ms = lead_ms
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._sent_bytes = 0
        self._pushed_at = 0.0
        self._began_at = not_before
        """Earliest time at which the listener hears the first byte, moved later by every pause in the supply."""
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
    def heard_at(self) -> float:
        """Time at which the listener has heard everything that was sent."""
        return self._began_at + self.sent_ms / 1000

    @property
    def is_empty(self) -> bool:
        return not self._queued_bytes

    @property
    def has_room(self) -> bool:
        return self._format.duration_ms(self._queued_bytes) < QUEUE_LIMIT_MS

    def push(self, pcm: bytes, now: float) -> None:
        """Queue what comes after all that was pushed before."""
        if pcm:
            self._queue.append(pcm)
            self._queued_bytes += len(pcm)
            self._pushed_at = now

    def take(self, now: float) -> bytes:
        """Return the audio that is due now; empty when nothing is, or less than a piece."""
        least = 0 if self._is_held else self._least()
        allowed = self._queued_bytes if self.is_hurried else min(self._queued_bytes, self._allowed(now))
        if not least or allowed < least:
            return b""
        # A listener who ran dry hears what comes now from now on, not in the past.
        self._began_at = max(self._began_at, now - self.sent_ms / 1000)
        return self._pop(allowed)

    def next_due(self) -> float | None:
        """Time at which `take` will have something; None while there is nothing to wait for."""
        least = 0 if self._is_held else self._least()
        if not least:
            return None
        if self.is_hurried:
            return self._pushed_at
        return max(self._pushed_at, self.heard_at + (self._format.duration_ms(least) - self._lead_ms) / 1000)

    def heard_ms(self, now: float) -> float:
        """Length of the response that the listener has heard, if they play it as it arrives."""
        return min(self.sent_ms, max(0.0, (now - self._began_at) * 1000))

    def hold(self, now: float) -> None:
        """The listener hears no more: what they have not heard waits to be sent again."""
        self._rewind(self.heard_ms(now))
        self._is_held = True

    def go_on(self, from_ms: float, now: float) -> float:
        """Go on from the beginning of the word that was heard at `from_ms`; returns its position."""
        self._rewind(self.word_start(from_ms))
        self._is_held = False
        self._began_at = now - self.sent_ms / 1000
        return self.sent_ms

    def _rewind(self, to_ms: float) -> None:
        """Send what comes behind `to_ms` once more."""
        count = min(len(self._sent), max(0, self._sent_bytes - self._format.size(to_ms)))
        if count:
            self._queue.appendleft(bytes(self._sent[-count:]))
            del self._sent[-count:]
            self._queued_bytes += count
            self._sent_bytes -= count

    def word_start(self, at_ms: float) -> float:
        """The end of the last pause before it, or else of what is most quiet there."""
        step = self._format.size(LEVEL_MS)
        kept_from, end_ms = self._sent_bytes - len(self._sent), at_ms - NOTICED_MS
        first = max(kept_from, self._format.size(max(0.0, end_ms - LONGEST_WORD_MS)))
        heard = bytes(self._sent[first - kept_from : max(0, self._format.size(max(0.0, end_ms)) - kept_from)])
        if len(heard) < step:
            return min(at_ms, self._format.duration_ms(first))
        samples = np.frombuffer(heard[: len(heard) // step * step], dtype="<i2").astype(np.float32)
        levels = np.sqrt(np.square(samples.reshape(-1, step // 2)).mean(axis=1))
        quiet = np.flatnonzero(levels <= levels.max() * QUIET_SHARE)
        if not len(quiet) and not first:
            return 0.0
        last = int(quiet[-1]) if len(quiet) else int(levels.argmin())
        return self._format.duration_ms(first + (last + 1) * step)

    def drop(self) -> None:
        """Forget what was not sent."""
        self._queue.clear()
        self._queued_bytes = 0

    def _least(self) -> int:
        """Bytes that are worth an event; 0 when what is queued must wait for more."""
        piece = self._format.size(PIECE_MS)
        if self._queued_bytes >= piece:
            return piece
        return self._queued_bytes if self.is_complete or self.is_hurried else 0

    def _allowed(self, now: float) -> int:
        """Bytes that keep the listener no more than the lead ahead."""
        ahead_ms = max(0.0, self.heard_at - now) * 1000
        return self._format.size(max(0.0, self._lead_ms + ROUNDING_MS - ahead_ms))

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
        taken = b"".join(pieces)
        self._sent += taken
        del self._sent[: -self._kept_bytes]
        return taken
