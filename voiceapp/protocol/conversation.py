"""The items of a conversation: what was said, by whom, and how much of it was heard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.values import read_text

MAX_ITEMS = 1000
"""Older items are forgotten; hosted models keep about 100 turns."""
MAX_CHARACTERS = 4_000_000
"""Of all items together; older ones are forgotten."""
MAX_TEXT = 200_000
"""Characters of one field of an item."""


@dataclass(slots=True, eq=False)
class Item:
    """One entry of the conversation."""

    id: str
    type: str = "message"
    """`message`, `function_call` or `function_call_output`."""
    role: str = "user"
    status: str = "completed"
    text: str = ""
    """The words: typed, recognised, or (for the assistant) heard by the listener."""
    spoken: bool = False
    """The words were or will be audio; the wire shows them as a transcript."""
    unheard: str = ""
    """What the assistant said after it was interrupted."""
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: str = ""
    marks: list[tuple[int, float]] = field(default_factory=list)
    """Where the audio of an assistant item stands: (characters said, ms of audio), ascending."""

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.text) + len(self.unheard) + len(self.arguments) + len(self.output)

    def to_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "id": self.id,
            "object": "realtime.item",
            "type": self.type,
            "status": self.status,
        }
        if self.type == "function_call":
            return {**wire, "call_id": self.call_id, "name": self.name, "arguments": self.arguments}
        if self.type == "function_call_output":
            return {**wire, "call_id": self.call_id, "output": self.output}
        return {**wire, "role": self.role, "content": [self.part()] if self._has_content() else []}

    def part(self) -> dict[str, Any]:
        """The one content part of a message."""
        if self.role == "assistant":
            return {"type": "audio", "transcript": self.text} if self.spoken else {"type": "text", "text": self.text}
        if self.spoken:
            return {"type": "input_audio", "transcript": self.text or None}
        return {"type": "input_text", "text": self.text}

    def cut(self, audio_end_ms: float) -> None:
        """Keep only what was heard up to `audio_end_ms`; the rest moves to `unheard`. May be called again."""
        whole = self.text + self.unheard
        end = _characters_heard(whole, self.marks, audio_end_ms)
        self.text, self.unheard = whole[:end], whole[end:]

    def _has_content(self) -> bool:
        return bool(self.text) or self.spoken or self.role != "assistant"


def _characters_heard(text: str, marks: list[tuple[int, float]], audio_end_ms: float) -> int:
    """How many characters had sounded at `audio_end_ms`, at a word's end: exact at marks, in proportion between."""
    said, since_ms = 0, 0.0
    for characters, until_ms in marks:
        if audio_end_ms >= until_ms:
            said, since_ms = characters, until_ms
            continue
        share = (audio_end_ms - since_ms) / (until_ms - since_ms)
        reached = said + int((characters - said) * share)
        boundary = max(text.rfind(" ", said, reached + 1), text.rfind("\n", said, reached + 1))
        return boundary if boundary > said else said
    return said


class Conversation:
    """The items in order."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def find(self, item_id: str) -> Item:
        """Raises InvalidParameter when there is no such item."""
        for item in self.items:
            if item.id == item_id:
                return item
        raise InvalidParameter(f"There is no item '{item_id[:80]}' in this conversation.", param="item_id")

    def add(self, item: Item, previous_item_id: str | None = None) -> str | None:
        """Insert after `previous_item_id` (`root`: first; None: last) and return the id of the item before it.

        Raises:
            InvalidParameter: no such previous item, or an item of this id exists already.
        """
        if any(other.id == item.id for other in self.items):
            raise InvalidParameter(f"An item '{item.id[:80]}' exists already.", param="item.id")
        if previous_item_id is None:
            position = len(self.items)
        elif previous_item_id == "root":
            position = 0
        else:
            position = self.items.index(self.find(previous_item_id)) + 1
        self.items.insert(position, item)
        before = self.items[position - 1].id if position else None
        self._forget_oldest()
        return before

    def remove(self, item: Item) -> None:
        self.items.remove(item)

    def history(self, max_turns: int | None) -> tuple[Item, ...]:
        """The items a model should see: all, or those of the last `max_turns` user turns and every system item.

        Function calls stand with their answers behind them, however late these came; calls without an answer and
        answers without a call are left out, because chat models refuse them.
        """
        users = [i for i, item in enumerate(self.items) if item.type == "message" and item.role == "user"]
        start = users[-max_turns] if max_turns is not None and len(users) > max_turns else 0
        recent = [item for i, item in enumerate(self.items) if i >= start or item.role == "system"]
        answers = {item.call_id: item for item in recent if item.type == "function_call_output"}
        seen: list[Item] = []
        owed: list[Item] = []
        for item in recent:
            if item.type == "function_call":
                if item.status == "completed" and item.call_id in answers:
                    seen.append(item)
                    owed.append(answers.pop(item.call_id))
                continue
            seen.extend(owed)
            owed.clear()
            if item.type == "message":
                seen.append(item)
        return (*seen, *owed)

    def _forget_oldest(self) -> None:
        size = sum(item.size for item in self.items)
        while len(self.items) > 1 and (len(self.items) > MAX_ITEMS or size > MAX_CHARACTERS):
            size -= self.items.pop(0).size


def read_item(wire: dict[str, Any], new_id: str) -> tuple[Item, str | None]:
    """An item from `conversation.item.create`, and the base64 of its audio when words must still be recognised.

    Raises:
        InvalidParameter: an unknown type, role or content, or a field missing.
    """
    item_id = wire.get("id")
    item = Item(id=item_id if isinstance(item_id, str) and 0 < len(item_id) <= 128 else new_id)
    kind = wire.get("type", "message")
    if kind == "function_call_output":
        item.type, item.role = kind, "tool"
        item.call_id = _string(wire, "call_id")
        item.output = _string(wire, "output")
        return item, None
    if kind == "function_call":
        item.type, item.role = kind, "assistant"
        item.call_id, item.name = _string(wire, "call_id"), _string(wire, "name")
        item.arguments = _string(wire, "arguments")
        return item, None
    if kind != "message":
        raise InvalidParameter("item.type must be message, function_call or function_call_output.", param="item.type")
    role = wire.get("role")
    if role not in ("user", "assistant", "system"):
        raise InvalidParameter("item.role must be user, assistant or system.", param="item.role")
    item.role = role
    audio = _read_content(item, wire.get("content"))
    return item, audio


_TEXT_PARTS = ("input_text", "output_text", "text")
_AUDIO_PARTS = ("input_audio", "audio", "output_audio")


def _read_content(item: Item, content: object) -> str | None:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        raise InvalidParameter("item.content must be a list of content parts.", param="item.content")
    words: list[str] = []
    audio: str | None = None
    for position, part in enumerate(content):
        param = f"item.content[{position}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in _TEXT_PARTS:
            words.append(_string(part, "text", param))
        elif kind in _AUDIO_PARTS:
            item.spoken = True
            if isinstance(part.get("transcript"), str):
                words.append(_string(part, "transcript", param))
            elif isinstance(part.get("audio"), str) and item.role == "user" and audio is None:
                audio = part["audio"]
            else:
                raise InvalidParameter(f"{param} needs audio or a transcript.", param=param)
        elif kind == "input_image":
            raise InvalidParameter("This model has no eyes: it cannot take images.", param=param)
        else:
            raise InvalidParameter(
                f"{param}.type must be one of {', '.join(_TEXT_PARTS + _AUDIO_PARTS)}.", param=f"{param}.type"
            )
    item.text = " ".join(words)
    return audio


def _string(wire: dict[str, Any], name: str, at: str = "item") -> str:
    return read_text(wire.get(name), f"{at}.{name}", limit=MAX_TEXT)
