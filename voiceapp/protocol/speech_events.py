"""The events of sessions that read text aloud, on the same address as conversations: text in, sound out. Sans-I/O.

`server_commit`: text is spoken as it comes. `commit`: it is spoken when the client says so.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from voiceapp.formats import identifier
from voiceapp.protocol.reading import EventError, JsonObject, parse_fields, tidy

__all__ = [
    "COMMIT",
    "MAX_TEXT",
    "RESPONSE_CANCEL",
    "SERVER_COMMIT",
    "SESSION_FINISH",
    "SESSION_UPDATE",
    "TEXT_APPEND",
    "TEXT_CLEAR",
    "TEXT_COMMIT",
    "EventError",
    "JsonObject",
    "SpeechEvent",
    "SpeechResponse",
    "event",
    "new_id",
    "read_speech_event",
]

SESSION_UPDATE = "session.update"
TEXT_APPEND = "input_text_buffer.append"
TEXT_COMMIT = "input_text_buffer.commit"
TEXT_CLEAR = "input_text_buffer.clear"
RESPONSE_CANCEL = "response.cancel"
SESSION_FINISH = "session.finish"
_KINDS = (SESSION_UPDATE, TEXT_APPEND, TEXT_COMMIT, TEXT_CLEAR, RESPONSE_CANCEL, SESSION_FINISH)

SERVER_COMMIT = "server_commit"
COMMIT = "commit"
MAX_TEXT = 20_000
"""Characters in one event, and of what waits for a commit."""


@dataclass(frozen=True, slots=True)
class SpeechEvent:
    """A message of a client."""

    kind: str
    event_id: str | None
    text: str = ""
    session: JsonObject = field(default_factory=dict)


def read_speech_event(text: str) -> SpeechEvent:
    """One JSON text frame.

    Raises:
        EventError: if it cannot be read, or does not exist in such a session.
    """
    fields = tidy(parse_fields(text))
    kind = fields.message.get("type")
    if kind == TEXT_APPEND:
        words = fields.string("text")
        if len(words) > MAX_TEXT:
            message = f"'text' is longer than {MAX_TEXT:,} characters: send it in pieces."
            raise EventError(message, code="invalid_value", param="text", event_id=fields.event_id)
        return SpeechEvent(kind, fields.event_id, text=words)
    if kind == SESSION_UPDATE:
        return SpeechEvent(kind, fields.event_id, session=fields.object("session"))
    if kind not in _KINDS:
        message = f"A session that reads text aloud takes {', '.join(_KINDS)}."
        raise EventError(message, code="unknown_event_type", param="type", event_id=fields.event_id)
    return SpeechEvent(str(kind), fields.event_id)


new_id = identifier
"""An id of a session, a response or an item."""


def event(kind: str, **about: Any) -> JsonObject:
    """An event of the server."""
    return {"type": kind, "event_id": identifier("event"), **about}


class SpeechResponse:
    """One response: its events, from the first to `response.done`."""

    def __init__(self, voice: str) -> None:
        self.id = identifier("resp")
        self._item_id = identifier("item")
        self._voice = voice

    def begun(self) -> list[JsonObject]:
        """Before its sound."""
        return [
            event("response.created", response=self._to_wire("in_progress")),
            event("response.output_item.added", **self._of_response, item=self._item("in_progress")),
            event("response.content_part.added", **self._of_item, part={"type": "audio", "text": ""}),
        ]

    def sound(self, audio: bytes) -> JsonObject:
        """More of its sound."""
        return event("response.audio.delta", **self._of_item, delta=base64.b64encode(audio).decode())

    def done(self, status: str, characters: int, *, error: JsonObject | None = None) -> list[JsonObject]:
        """Behind its sound: `completed`, `cancelled` or `failed`."""
        item = self._item("completed" if status == "completed" else "incomplete")
        response = {**self._to_wire(status), "output": [item], "usage": {"characters": characters}}
        if error is not None:
            response["status_details"] = {"type": "failed", "error": error}
        return [
            event("response.audio.done", **self._of_item),
            event("response.content_part.done", **self._of_item, part={"type": "audio", "text": ""}),
            event("response.output_item.done", **self._of_response, item=item),
            event("response.done", response=response),
        ]

    @property
    def _of_response(self) -> JsonObject:
        return {"response_id": self.id, "output_index": 0}

    @property
    def _of_item(self) -> JsonObject:
        return {**self._of_response, "item_id": self._item_id, "content_index": 0}

    def _item(self, status: str) -> JsonObject:
        content = [{"type": "audio", "text": ""}] if status != "in_progress" else []
        about = {"id": self._item_id, "object": "realtime.item", "type": "message", "role": "assistant"}
        return {**about, "status": status, "content": content}

    def _to_wire(self, status: str) -> JsonObject:
        about = {"id": self.id, "object": "realtime.response", "status": status, "status_details": None}
        return {**about, "modalities": ["text", "audio"], "voice": self._voice, "output": [], "usage": None}
