"""Sessions that read text aloud, on the same address as conversations: settings, events and their dialect. Sans-I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from voiceapp.errors import InvalidParameter
from voiceapp.formats import identifier
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import EventError, Fields, JsonObject, parse_fields, tidy
from voiceapp.protocol.wire.values import read_integer, read_number, read_text

SERVER_COMMIT = "server_commit"
"""Text is spoken as it comes; a pause completes a response."""
COMMIT = "commit"
"""Text is spoken when the client commits it."""
TASK = "task"
"""All text is one response, and the session ends with it."""
MAX_TEXT = 20_000
"""Characters in one event, and of what waits for a commit."""

FORMATS = ("pcm", "wav", "mp3", "opus")
MP3_RATES_HZ = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
"""Sample rates of mp3; opus has one of its own, and the other formats any."""
FULL_VOLUME = 50
"""The volume at which the sound is what the engine made."""


# ── Settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SpeechSettings:
    voice: str = ""
    format: str = "pcm"
    sample_rate_hz: int = 24_000
    rate: float = 1.0
    """1.0 is the voice's own."""
    gain: float = 1.0

    def merged(self, given: Mapping[str, Any], prefix: str, *, format_name: str, rate_name: str) -> SpeechSettings:
        """These settings with those that a client gives; unknown ones are ignored, and None changes nothing.

        Raises:
            InvalidParameter: if one is of the wrong type or out of range; `prefix` stands before its name.
        """
        changes: dict[str, Any] = {}
        if given.get("voice") is not None:
            changes["voice"] = read_text(given["voice"], f"{prefix}voice", limit=128)
        if (kind := given.get(format_name)) is not None:
            if kind not in FORMATS:
                name = f"{prefix}{format_name}"
                raise InvalidParameter(f"{name} must be one of {', '.join(FORMATS)}.", param=name)
            changes["format"] = kind
        if (rate_hz := given.get("sample_rate")) is not None:
            changes["sample_rate_hz"] = read_integer(rate_hz, f"{prefix}sample_rate", 8_000, 48_000)
        if (rate := given.get(rate_name)) is not None:
            changes["rate"] = read_number(rate, f"{prefix}{rate_name}", 0.5, 2.0)
        if (volume := given.get("volume")) is not None:
            changes["gain"] = read_number(volume, f"{prefix}volume", 0, 100) / FULL_VOLUME
        merged = replace(self, **changes)
        if merged.format == "mp3" and merged.sample_rate_hz not in MP3_RATES_HZ:
            rates, name = ", ".join(map(str, MP3_RATES_HZ)), f"{prefix}sample_rate"
            raise InvalidParameter(f"{name} must be one of {rates} where the format is mp3.", param=name)
        return merged


@dataclass(frozen=True, slots=True)
class ReadAloudSettings:
    mode: str = SERVER_COMMIT
    speech: SpeechSettings = SpeechSettings()

    def merged(self, given: JsonObject) -> ReadAloudSettings:
        """These settings with the fields of a `session.update`.

        Raises:
            InvalidParameter: if one is of the wrong type or out of range.
        """
        mode = given.get("mode") or self.mode
        if mode not in (SERVER_COMMIT, COMMIT):
            raise InvalidParameter("session.mode must be server_commit or commit.", param="session.mode")
        speech = self.speech.merged(given, "session.", format_name="response_format", rate_name="speech_rate")
        return ReadAloudSettings(str(mode), speech)


# ── Events ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAppend(ev.ClientEvent):
    type = "input_text_buffer.append"
    text: str

    @classmethod
    def from_wire(cls, wire: Fields) -> TextAppend:
        text = wire.string("text")
        if len(text) > MAX_TEXT:
            message = f"'text' is longer than {MAX_TEXT:,} characters: send it in pieces."
            raise EventError(message, code="invalid_value", param="text", event_id=wire.event_id)
        return cls(text=text, event_id=wire.event_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCommit(ev.ClientEvent):
    """All text so far is to be spoken now."""

    type = "input_text_buffer.commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextClear(ev.ClientEvent):
    """Text that was not spoken yet is dropped."""

    type = "input_text_buffer.clear"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCommitted(ev.ServerEvent):
    type = "input_text_buffer.committed"
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCleared(ev.ServerEvent):
    type = "input_text_buffer.cleared"


CLIENT_EVENTS: dict[str, type[ev.ClientEvent]] = {
    cls.type: cls for cls in (ev.SessionUpdate, TextAppend, TextCommit, TextClear, ev.ResponseCancel, ev.SessionFinish)
}


class ReadAloudDialect:
    """The events of such a session on the wire; it announces no end, as the vendor's does not."""

    def read(self, text: str) -> ev.ClientEvent:
        fields = tidy(parse_fields(text))
        cls = CLIENT_EVENTS.get(str(fields.message.get("type")))
        if cls is None:
            message = f"A session that reads text aloud takes {', '.join(CLIENT_EVENTS)}."
            raise EventError(message, code="unknown_event_type", param="type", event_id=fields.event_id)
        return cls.from_wire(fields)

    def write(self, event: ev.ServerEvent) -> list[JsonObject]:
        return [] if isinstance(event, ev.SessionClosing) else [event.to_wire()]


READ_ALOUD = ReadAloudDialect()
"""Dialect of all sessions: it has no state."""


@dataclass(frozen=True, slots=True)
class ReadAloudResponse:
    voice: str
    id: str = field(default_factory=lambda: identifier("resp"))
    item_id: str = field(default_factory=lambda: identifier("item"))

    def begun(self) -> list[ev.ServerEvent]:
        return [
            ev.ResponseCreated(response=self._response("in_progress")),
            ev.OutputItemAdded(response_id=self.id, output_index=0, item=self._item("in_progress")),
            ev.ContentPartAdded(**self._place, part={"type": "audio", "text": ""}),
        ]

    def sound(self, audio: bytes) -> ev.AudioDelta:
        return ev.AudioDelta(**self._place, audio=audio)

    def done(self, status: str, characters: int, *, error: JsonObject | None = None) -> list[ev.ServerEvent]:
        """Return the events behind its sound; `status` is `completed`, `cancelled` or `failed`."""
        item = self._item("completed" if status == "completed" else "incomplete")
        response = {**self._response(status), "output": [item], "usage": {"characters": characters}}
        if error is not None:
            response["status_details"] = {"type": "failed", "error": error}
        return [
            ev.AudioDone(**self._place),
            ev.ContentPartDone(**self._place, part={"type": "audio", "text": ""}),
            ev.OutputItemDone(response_id=self.id, output_index=0, item=item),
            ev.ResponseDone(response=response),
        ]

    @property
    def _place(self) -> dict[str, Any]:
        return {"response_id": self.id, "item_id": self.item_id, "output_index": 0}

    def _item(self, status: str) -> JsonObject:
        content = [{"type": "audio", "text": ""}] if status != "in_progress" else []
        about = {"id": self.item_id, "object": "realtime.item", "type": "message", "role": "assistant"}
        return {**about, "status": status, "content": content}

    def _response(self, status: str) -> JsonObject:
        about = {"id": self.id, "object": "realtime.response", "status": status, "status_details": None}
        return {**about, "modalities": ["text", "audio"], "voice": self.voice, "output": [], "usage": None}
