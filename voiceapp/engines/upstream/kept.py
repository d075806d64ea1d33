"""What a session at a service elsewhere can be begun again with: its settings, and the items of its conversation."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from voiceapp.engines.upstream.turns import words_of

Wire = Mapping[str, Any]

MAX_ITEMS = 400
MAX_CHARACTERS = 400_000
"""Of all items together; the oldest are forgotten first."""
MAX_PENDING = 32
"""Changes of settings that the service has not answered yet."""
WORD_PARTS = {"user": "input_text", "system": "input_text", "assistant": "text"}


class KeptConversation:
    """Follows the events of one session."""

    def __init__(self, settings: Wire) -> None:
        """`settings` are those that every session begins with."""
        self.settings: dict[str, Any] = dict(settings)
        self._pending: deque[dict[str, Any]] = deque(maxlen=MAX_PENDING)
        self._items: dict[str, dict[str, Any]] = {}

    def change(self, settings: Wire) -> None:
        """The caller asks for a change of the settings; it counts when the service has taken it."""
        self._pending.append(dict(settings))

    def follow(self, wire: Wire) -> None:
        """Take an event of the service's."""
        kind = wire["type"]
        if kind == "session.updated" and self._pending:
            self.settings = _merged(self.settings, self._pending.popleft())
        elif kind == "error" and self._pending and _is_about_settings(wire):
            self._pending.popleft()
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
        calls = {item["call_id"] for item in self._items.values() if item.get("type") == "function_call_output"}
        found: list[dict[str, Any]] = []
        for item_id, item in self._items.items():
            if item.get("type") == "message":
                role, words = str(item.get("role")), words_of(item)
                if words and role in WORD_PARTS:
                    content = [{"type": WORD_PARTS[role], "text": words}]
                    found.append({"id": item_id, "type": "message", "role": role, "content": content})
            elif item.get("type") == "function_call_output" or item.get("call_id") in calls:
                found.append({name: value for name, value in item.items() if name not in ("object", "status")})
        return found

    def _put(self, item: object, previous: object) -> None:
        if not isinstance(item, dict) or not isinstance(item.get("id"), str):
            return
        if item.get("type") == "function_call_output" and not isinstance(item.get("call_id"), str):
            return
        known = self._items.get(item["id"])
        if known is not None:
            if words_of(item) or not words_of(known):
                known.update(item)
        elif previous == "root" or (isinstance(previous, str) and previous in self._items):
            self._insert(item, previous)
        else:
            self._items[item["id"]] = dict(item)
        size = sum(map(_size, self._items.values())) if len(self._items) > 1 else 0
        while len(self._items) > 1 and (len(self._items) > MAX_ITEMS or size > MAX_CHARACTERS):
            size -= _size(self._items.pop(next(iter(self._items))))

    def _insert(self, item: dict[str, Any], previous: str) -> None:
        before = [] if previous == "root" else list(self._items)[: list(self._items).index(previous) + 1]
        rest = {item_id: other for item_id, other in self._items.items() if item_id not in before}
        self._items = {**{item_id: self._items[item_id] for item_id in before}, item["id"]: dict(item), **rest}

    def _say(self, wire: Wire, part: str) -> None:
        item, words = self._items.get(str(wire.get("item_id"))), wire.get("transcript")
        if item is not None and isinstance(words, str):
            item["content"] = [{"type": part, "transcript": words}]


def _merged(settings: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Settings after a change: what is absent stays, in objects within them too."""
    found = dict(settings)
    for name, value in change.items():
        old = found.get(name)
        found[name] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return found


def _is_about_settings(wire: Wire) -> bool:
    error = wire.get("error")
    param = error.get("param") if isinstance(error, dict) else None
    return isinstance(param, str) and param.startswith("session")


def _size(item: dict[str, Any]) -> int:
    """Characters."""
    return len(words_of(item)) + sum(len(str(item.get(name, ""))) for name in ("arguments", "output"))
