"""Settings, items and audio from which a session at another service is begun again."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from voiceapp.protocol.forwarded.turns import words_of
from voiceapp.protocol.wire.reading import JsonObject

Wire = Mapping[str, Any]

MAX_ITEMS = 400
MAX_CHARACTERS = 400_000
"""Characters of all items together; the oldest are forgotten first."""
MAX_SILENCE_MS = 1_000
"""Audio that is kept before speech is found in it."""
MAX_SPEECH_MS = 9_000
"""Audio with speech that is kept. A service is sent it at once, with the speech until the new session has begun:
sessions take no more than 20 s so fast."""
MAX_MESSAGES = 2_000
"""Messages with audio, which may be as short as one sample each."""
MAX_SETTINGS_CHARACTERS = 500_000
"""Settings in JSON: a change that makes them longer is not kept."""
KEPT_FIELDS = ("id", "type", "role", "call_id", "name", "arguments", "output")
MAX_UNANSWERED = 32
MAX_EVENT_ID = 512
"""Characters of an event's id that services of OpenAI's family take, and name in an error."""
ANSWERS = {
    "session.updated": "session.update",
    "conversation.item.created": "conversation.item.create",
    "response.created": "response.create",
}
"""The caller's event that is answered, by the service's event."""
WORD_PARTS = {"user": "input_text", "system": "input_text", "assistant": "text"}


class ConversationReplay:
    def __init__(self, settings: Wire) -> None:
        """`settings` are those that every session begins with."""
        self.settings: dict[str, Any] = dict(settings)
        self._unanswered: deque[JsonObject] = deque(maxlen=MAX_UNANSWERED)
        self._items: dict[str, dict[str, Any]] = {}

    def sent(self, wire: JsonObject) -> None:
        """Take an event of the caller's; what it asks for counts when the service has taken it."""
        self._unanswered.append(wire)

    @property
    def unanswered(self) -> tuple[JsonObject, ...]:
        """Events of the caller that the service has not answered."""
        return tuple(self._unanswered)

    def follow(self, wire: Wire) -> None:
        kind = wire["type"]
        asked = self._answered(wire)
        if kind == "session.updated" and asked is not None and isinstance(asked.get("session"), dict):
            merged = _merged(self.settings, asked["session"])
            if len(json.dumps(merged)) <= MAX_SETTINGS_CHARACTERS:
                self.settings = merged
        elif kind in ("conversation.item.created", "response.output_item.done"):
            self._put(wire.get("item"), wire.get("previous_item_id"))
        elif kind == "conversation.item.deleted":
            self._items.pop(str(wire.get("item_id")), None)
        elif kind == "conversation.item.input_audio_transcription.completed":
            self._say(wire, "input_audio")
        elif kind == "conversation.item.truncated" and isinstance(wire.get("transcript"), str):
            self._say(wire, "audio")

    def items(self) -> list[dict[str, Any]]:
        """The items, as they are to be created again; those without words are left out."""
        calls = {item.get("call_id") for item in self._items.values() if item.get("type") == "function_call_output"}
        found: list[dict[str, Any]] = []
        for item_id, item in self._items.items():
            if item.get("type") == "message":
                role, words = str(item.get("role")), words_of(item)
                if words and role in WORD_PARTS:
                    content = [{"type": WORD_PARTS[role], "text": words}]
                    found.append({"id": item_id, "type": "message", "role": role, "content": content})
            elif "call_id" in item and item["call_id"] in calls:
                found.append({name: value for name, value in item.items() if name != "content"})
        return found

    def _answered(self, wire: Wire) -> Wire | None:
        """Take out and return the caller's event that this event answers."""
        answers = _is_refusal_of if wire["type"] == "error" else _is_answer_to
        found = next((one for one in self._unanswered if answers(wire, one)), None)
        if found is not None:
            self._unanswered.remove(found)
        return found

    def _put(self, item: object, previous: object) -> None:
        if not isinstance(item, dict) or not isinstance(item.get("id"), str):
            return
        if item.get("type") == "function_call_output" and not isinstance(item.get("call_id"), str):
            return
        item = _kept(item)
        known = self._items.get(item["id"])
        if known is not None:
            if words_of(item) or not words_of(known):
                known.update(item)
        elif previous == "root" or (isinstance(previous, str) and previous in self._items):
            self._insert(item, previous)
        else:
            self._items[item["id"]] = item
        size = sum(map(_size, self._items.values())) if len(self._items) > 1 else 0
        while len(self._items) > 1 and (len(self._items) > MAX_ITEMS or size > MAX_CHARACTERS):
            size -= _size(self._items.pop(next(iter(self._items))))

    def _insert(self, item: dict[str, Any], previous: str) -> None:
        before = [] if previous == "root" else list(self._items)[: list(self._items).index(previous) + 1]
        rest = {item_id: other for item_id, other in self._items.items() if item_id not in before}
        self._items = {**{item_id: self._items[item_id] for item_id in before}, item["id"]: item, **rest}

    def _say(self, wire: Wire, part: str) -> None:
        item, words = self._items.get(str(wire.get("item_id"))), wire.get("transcript")
        if item is not None and isinstance(words, str):
            item["content"] = [{"type": part, "transcript": words}]


class AudioReplay:
    """The caller's latest audio, for a session that has not heard it: a second of silence, or what is being said."""

    def __init__(self) -> None:
        self._messages: deque[tuple[str | JsonObject, float]] = deque()
        self._length_ms = 0.0
        self._total_ms = 0.0
        """Length of all audio that was ever pushed."""
        self.is_open = False
        """The caller speaks, or has not committed the speech."""

    def push(self, message: str | JsonObject, length_ms: float) -> None:
        """Take a message that carries audio, as text or read."""
        self._messages.append((message, length_ms))
        self._length_ms += length_ms
        self._total_ms += length_ms
        most_ms = MAX_SPEECH_MS if self.is_open else MAX_SILENCE_MS
        while self._messages and (self._length_ms > most_ms or len(self._messages) > MAX_MESSAGES):
            self._length_ms -= self._messages.popleft()[1]

    def forget(self) -> None:
        self._messages.clear()
        self._length_ms = 0.0
        self.is_open = False

    @property
    def begins_ms(self) -> float:
        """Position, in all audio of the caller, of the first message to be sent again."""
        return self._total_ms - self._length_ms

    def messages(self) -> list[str | JsonObject]:
        return [message for message, _ in self._messages]


def _kept(item: Wire) -> dict[str, Any]:
    """The fields from which an item is created again: its words, without images and audio."""
    found: dict[str, Any] = {name: item[name] for name in KEPT_FIELDS if isinstance(item.get(name), str)}
    if words := words_of(item):
        found["content"] = [{"type": "text", "text": words}]
    return found


def _merged(settings: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Settings after a change: what is absent stays, in objects within them too."""
    found = dict(settings)
    for name, value in change.items():
        old = found.get(name)
        found[name] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return found


def _is_answer_to(wire: Wire, asked: Wire) -> bool:
    if ANSWERS.get(wire["type"]) != asked["type"]:
        return False
    item, wanted = wire.get("item"), asked.get("item")
    if not isinstance(item, dict) or not isinstance(wanted, dict):
        return True
    names = ("id", "type", "role") if "id" in wanted else ("type", "role")
    is_like = all(item.get(name) == wanted.get(name) for name in names if name in wanted)
    return is_like and ("id" in wanted or not _was_spoken(item))


def _was_spoken(item: Wire) -> bool:
    """Items of speech are created by the service itself."""
    content = item.get("content")
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, dict) and first.get("type") == "input_audio" and not first.get("transcript")


def _is_refusal_of(wire: Wire, asked: Wire) -> bool:
    """True if the error names the event's id, or else one of its fields."""
    error = wire.get("error")
    about, param = (error.get("event_id"), error.get("param")) if isinstance(error, dict) else (None, None)
    if about is not None:
        own = asked.get("event_id")
        return isinstance(own, str) and about in (own, own[:MAX_EVENT_ID])
    prefix = {"session.update": "session", "conversation.item.create": "item"}.get(asked["type"], "response")
    return not isinstance(param, str) or param.startswith(prefix)


def _size(item: dict[str, Any]) -> int:
    """Characters."""
    return len(words_of(item)) + sum(len(str(item.get(name, ""))) for name in ("arguments", "output"))
