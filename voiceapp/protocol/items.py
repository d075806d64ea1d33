"""Items of a conversation: messages, function calls, function outputs; as clients write them, and on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.wire.values import read_text

MAX_TEXT = 200_000
"""Characters of one field of an item."""


class Role(StrEnum):
    """Author of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class ItemStatus(StrEnum):
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a reply."""

    kind: Literal["skill", "document", "model"]
    """`skill`: this program; `document`: a passage was quoted."""
    name: str = ""
    may_be_wrong: bool = False
    """The model is so small that it is often wrong."""

    def to_wire(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "may_be_wrong": self.may_be_wrong}


@dataclass(slots=True, eq=False)
class Message:
    """Words of one role, typed or spoken."""

    id: str
    role: Role = Role.USER
    status: ItemStatus = ItemStatus.COMPLETED
    text: str = ""
    """The words: typed, recognised, or (of the assistant) heard by the user."""
    spoken: bool = False
    """The words were or will be audio; the wire shows them as a transcript."""
    unheard: str = ""
    """Text that the assistant said after it was interrupted."""
    marks: list[tuple[int, float]] = field(default_factory=list)
    """Positions in the assistant's audio: (characters said, ms of audio), ascending."""
    audio_ms: float = 0.0
    """Length of the audio of what the assistant says."""
    author: Author | None = None
    """The author of what the assistant says."""

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.text) + len(self.unheard)

    def to_wire(self) -> dict[str, Any]:
        has_content = self.text or self.spoken or self.role is not Role.ASSISTANT
        content = [self.part()] if has_content else []
        author = {"author": self.author.to_wire()} if self.author else {}
        return {**_wire(self.id, "message", self.status), "role": self.role.value, "content": content, **author}

    def part(self) -> dict[str, Any]:
        """Its one content part."""
        if self.role is Role.ASSISTANT:
            return {"type": "audio", "transcript": self.text} if self.spoken else {"type": "text", "text": self.text}
        if self.spoken:
            return {"type": "input_audio", "transcript": self.text or None}
        return {"type": "input_text", "text": self.text}

    @property
    def _known_ms(self) -> float:
        return max(self.audio_ms, self.marks[-1][1] if self.marks else 0.0)

    def said_until(self, audio_end_ms: float) -> str:
        """The words up to there."""
        return self.text[: _characters_heard(self.text, self.marks, min(audio_end_ms, self._known_ms))]

    def cut(self, audio_end_ms: float) -> None:
        """Keep only what was heard up to `audio_end_ms`; the rest moves to `unheard`. May be called again."""
        whole = self.text + self.unheard
        end = _characters_heard(whole, self.marks, min(audio_end_ms, self._known_ms))
        self.text, self.unheard = whole[:end], whole[end:]


@dataclass(slots=True, eq=False)
class FunctionCall:
    """A function that the assistant calls; the client does."""

    id: str
    call_id: str
    name: str
    arguments: str = ""
    """JSON, as the model wrote it."""
    status: ItemStatus = ItemStatus.COMPLETED

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.arguments)

    def to_wire(self) -> dict[str, Any]:
        about = {"call_id": self.call_id, "name": self.name, "arguments": self.arguments}
        return {**_wire(self.id, "function_call", self.status), **about}


@dataclass(slots=True, eq=False)
class FunctionOutput:
    id: str
    call_id: str
    output: str
    status: ItemStatus = ItemStatus.COMPLETED

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.output)

    def to_wire(self) -> dict[str, Any]:
        about = {"call_id": self.call_id, "output": self.output}
        return {**_wire(self.id, "function_call_output", self.status), **about}


@dataclass(slots=True, eq=False)
class McpItem:
    """A list of a server's tools, a call of one, an approval that is asked for, or the client's word on it."""

    id: str
    kind: str
    fields: dict[str, Any]
    status: ItemStatus = ItemStatus.COMPLETED

    @property
    def size(self) -> int:
        """Characters."""
        return len(str(self.fields))

    def to_wire(self) -> dict[str, Any]:
        return {**_wire(self.id, self.kind, self.status), **self.fields}


Item = Message | FunctionCall | FunctionOutput | McpItem


def read_item(wire: dict[str, Any], new_id: str) -> tuple[Item, str | None]:
    """An item from `conversation.item.create`, and the base64 of its audio when words must still be recognised.

    Raises:
        InvalidParameter: an unknown type, role or content, or a field missing.
    """
    given = wire.get("id")
    item_id = given if isinstance(given, str) and 0 < len(given) <= 128 else new_id
    kind = wire.get("type", "message")
    if kind == "function_call_output":
        return FunctionOutput(item_id, _string(wire, "call_id"), _string(wire, "output")), None
    if kind == "mcp_approval_response":
        fields = {"approval_request_id": _string(wire, "approval_request_id"), "approve": wire.get("approve") is True}
        return McpItem(item_id, kind, fields), None
    if kind == "function_call":
        call_id, name, arguments = (_string(wire, field_name) for field_name in ("call_id", "name", "arguments"))
        return FunctionCall(item_id, call_id, name, arguments), None
    if kind != "message":
        raise InvalidParameter(
            "item.type must be a message, a function_call (_output) or mcp_approval_response.",
            param="item.type",
        )
    role = wire.get("role")
    if role not in tuple(Role):
        raise InvalidParameter("item.role must be user, assistant or system.", param="item.role")
    message = Message(item_id, Role(role))
    audio = _read_content(message, wire.get("content"))
    return message, audio


_TEXT_PARTS = ("input_text", "output_text", "text")
_AUDIO_PARTS = ("input_audio", "audio", "output_audio")


def _read_content(item: Message, content: object) -> str | None:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        raise InvalidParameter("item.content must be a list of one content part or more.", param="item.content")
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
            elif isinstance(part.get("audio"), str) and item.role is Role.USER and audio is None:
                audio = part["audio"]
            else:
                raise InvalidParameter(f"{param} needs audio or a transcript.", param=param)
        elif kind == "input_image":
            raise InvalidParameter(
                "This model does not accept images. Remove the image or choose a model with image input.", param=param
            )
        else:
            raise InvalidParameter(
                f"{param}.type must be one of {', '.join(_TEXT_PARTS + _AUDIO_PARTS)}.", param=f"{param}.type"
            )
    item.text = " ".join(words)
    return audio


def _string(wire: dict[str, Any], name: str, at: str = "item") -> str:
    return read_text(wire.get(name), f"{at}.{name}", limit=MAX_TEXT)


def _wire(item_id: str, kind: str, status: ItemStatus) -> dict[str, Any]:
    return {"id": item_id, "object": "realtime.item", "type": kind, "status": status.value}


CHARACTERS_PER_S = 14.0
"""About as fast as voices read, for a sentence that is heard before it is known how long it takes."""


def _characters_heard(text: str, marks: list[tuple[int, float]], audio_end_ms: float) -> int:
    """Return how many characters had sounded at `audio_end_ms`, at a word's end: exact at marks, in proportion between,
    and behind the last one as many as a voice usually reads in that time."""
    said, since_ms = 0, 0.0
    for characters, until_ms in marks:
        if audio_end_ms >= until_ms:
            said, since_ms = characters, until_ms
            continue
        share = (audio_end_ms - since_ms) / (until_ms - since_ms)
        return _word_end(text, said, said + int((characters - said) * share))
    return _word_end(text, said, said + int((audio_end_ms - since_ms) / 1000 * CHARACTERS_PER_S))


def _word_end(text: str, said: int, reached: int) -> int:
    boundary = max(text.rfind(" ", said, reached + 1), text.rfind("\n", said, reached + 1))
    return boundary if boundary > said else said
