"""Length of each item's audio, for `usage` of its transcription."""

from __future__ import annotations

from typing import TypeVar

from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.openai_realtime.settings import PCM_RATE_HZ
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import JsonObject

Event = TypeVar("Event", bound=ev.ClientEvent)


class Lengths:
    """Lengths of items whose words are not known yet."""

    def __init__(self) -> None:
        self.format = AudioFormat("pcm", PCM_RATE_HZ)
        """Format of the audio that the client sends."""
        self._appended_bytes = 0
        """Bytes since the last turn of a client that ends turns itself."""
        self._sent_ms = 0.0
        """Length of the item that the client sent last."""
        self._began_ms: dict[str, int] = {}
        self._lengths_ms: dict[str, float] = {}

    def appended(self, event: Event) -> Event:
        if isinstance(event, ev.AudioAppend):
            self._appended_bytes += len(event.audio)
        return event

    def sent(self, item: JsonObject) -> None:
        content = item.get("content")
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        encoded = next((part["audio"] for part in parts if isinstance(part.get("audio"), str)), "")
        self._sent_ms = self.format.wire_ms(len(encoded) * 3 // 4)

    def see(self, event: ev.ServerEvent) -> None:
        if isinstance(event, ev.SpeechStarted):
            self._began_ms[event.item_id] = event.audio_start_ms
        elif isinstance(event, ev.SpeechStopped):
            self._lengths_ms[event.item_id] = event.audio_end_ms - self._began_ms.pop(event.item_id, 0)
        elif isinstance(event, ev.AudioCommitted):
            self._lengths_ms.setdefault(event.item_id, self.format.wire_ms(self._appended_bytes))
            self._appended_bytes = 0
        elif isinstance(event, ev.AudioCleared):
            self._appended_bytes = 0
        elif isinstance(event, ev.ItemCreated) and self._sent_ms and event.item.get("role") == "user":
            self._lengths_ms.setdefault(event.item["id"], self._sent_ms)
            self._sent_ms = 0.0

    def take(self, item_id: str) -> float:
        """The length of an item in ms; it is not asked for again."""
        return self._lengths_ms.pop(item_id, 0.0)
