"""Recent events of a session, repeated for a caller whose connection was lost on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from voiceapp.engines.sound import opus
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.transports.interface import text_of

MAX_EVENTS = 2000
MAX_BYTES = 2 * 1024 * 1024
"""Bytes that are kept; of audio, that is 40 s."""
BYTES_PER_MS = opus.ENCODED_RATE_HZ // 1000 * 2
NUMBERED = "event_"


@dataclass(frozen=True, slots=True)
class _Sent:
    number: int
    event: ev.ServerEvent
    size: int
    start: int = 0
    """Bytes of the item's audio before this."""


class SentEvents:
    """The latest events of a session in order, numbered from 1 by their `event_id`. Bounded: the oldest go first."""

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()
        self._bytes = 0
        self._item_id = ""
        self._item_bytes = 0
        self.last = 0
        """Number of the latest event."""
        self.forgotten = 0
        """Number of the latest event that is not kept any more."""

    def add(self, event: ev.ServerEvent) -> ev.ServerEvent:
        """Keep one more event; returns it with its number."""
        self.last += 1
        event = replace(event, event_id=f"{NUMBERED}{self.last}")
        if isinstance(event, ev.AudioDelta):
            if event.item_id != self._item_id:
                self._item_id, self._item_bytes = event.item_id, 0
            sent = _Sent(self.last, event, len(event.audio), self._item_bytes)
            self._item_bytes += len(event.audio)
        else:
            sent = _Sent(self.last, event, len(text_of(event)))
        self._sent.append(sent)
        self._bytes += sent.size
        while len(self._sent) > MAX_EVENTS or self._bytes > MAX_BYTES:
            oldest = self._sent.popleft()
            self._bytes -= oldest.size
            self.forgotten = oldest.number
        return event

    def cut_audio(self) -> None:
        """Drop the audio so far: it is not repeated."""
        self._sent = deque(without_audio(self._sent))
        self._bytes = sum(sent.size for sent in self._sent)

    def missed(self, last: int, heard_ms: Mapping[str, int]) -> list[ev.ServerEvent]:
        """Return the events for a caller who has received everything up to event number `last`.

        `heard_ms` names the items whose voice was not heard to its end, and how much of each was heard: their audio
        begins there, and they are ended once more.
        """
        found: list[ev.ServerEvent] = []
        for sent in self._sent:
            event = sent.event
            if isinstance(event, ev.AudioDelta) and event.item_id in heard_ms:
                unheard = event.audio[max(0, heard_ms[event.item_id] * BYTES_PER_MS - sent.start) :]
                if unheard:
                    found.append(replace(event, audio=unheard))
            elif sent.number > last or (isinstance(event, ev.AudioDone) and event.item_id in heard_ms):
                found.append(event)
        return found


def without_audio(sent: Iterable[_Sent]) -> list[_Sent]:
    """The events that carry no audio."""
    return [one for one in sent if not isinstance(one.event, ev.AudioDelta)]
