"""Every event of the realtime dialect, as the client and the server say it.

Client events are read with `parse_client_event`, server events are written with `to_wire`. Names and fields are those
of the beta realtime dialect that existing client libraries speak; `conversation.item.truncated.transcript` and
`.unheard`, `session.closing`, `session.reminders.…`, `response.source.added` and `response.done.response.metrics` are
additions that a client may ignore. `response.audio.words` comes only to one that set `word_times`, `session.resumable`
and `session.resumed` only to one that asked for a session that can be resumed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Self, TypeVar

from voiceapp.protocol.wire.reading import EventError, Fields, JsonObject, parse_fields, tidy

__all__ = ["CLIENT_EVENTS", "SERVER_EVENTS", "ClientEvent", "EventError", "ServerEvent", "parse_client_event"]


Kind = TypeVar("Kind", bound="ClientEvent | ServerEvent")


def _by_type(base: type[Kind]) -> dict[str, type[Kind]]:
    """The events above of this kind, by their type on the wire and in the order of this file."""
    found = [each for each in globals().values() if isinstance(each, type) and issubclass(each, base)]
    return {each.type: each for each in found if hasattr(each, "type")}


# ── Client events ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEvent:
    """Something the client says."""

    type: ClassVar[str]
    event_id: str | None = None
    """The client's own identifier, echoed in an error about this event."""

    @classmethod
    def from_wire(cls, wire: Fields) -> Self:
        """The event, from its fields on the wire.

        Raises:
            EventError: if a field is missing or of the wrong type.
        """
        given = {
            of.name: _READ_AS[str(of.type).removesuffix(" | None")](wire, of.name)
            for of in fields(cls)
            if of.name != "event_id" and (of.default is of.default_factory is MISSING or wire.has(of.name))
        }
        return cls(event_id=wire.event_id, **given)


_READ_AS: dict[str, Callable[[Fields, str], Any]] = {
    "str": Fields.string,
    "int": Fields.count,
    "bytes": Fields.base64,
    "JsonObject": Fields.object,
    "list[JsonObject]": Fields.objects,
}
"""Readers by the annotation of a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUpdate(ClientEvent):
    """Change some of the session's settings; what is absent stays."""

    type = "session.update"
    session: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioAppend(ClientEvent):
    """More microphone audio, in the session's input format. Never acknowledged."""

    type = "input_audio_buffer.append"
    audio: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioCommit(ClientEvent):
    """The caller finished (manual mode): make a user item of what was appended."""

    type = "input_audio_buffer.commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioClear(ClientEvent):
    """Forget what was appended since the last commit."""

    type = "input_audio_buffer.clear"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageAppend(ClientEvent):
    """A picture to look at together with the audio."""

    type = "input_image_buffer.append"
    image: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCreate(ClientEvent):
    """Put an item into the conversation."""

    type = "conversation.item.create"
    item: JsonObject
    previous_item_id: str | None = None
    """Insert after this item; `root` inserts at the start; absent appends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRetrieve(ClientEvent):
    """Show one item."""

    type = "conversation.item.retrieve"
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDelete(ClientEvent):
    """Forget one item."""

    type = "conversation.item.delete"
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTruncate(ClientEvent):
    """The listener heard an assistant item only up to `audio_end_ms`."""

    type = "conversation.item.truncate"
    item_id: str
    content_index: int = 0
    audio_end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseCreate(ClientEvent):
    """Respond now."""

    type = "response.create"
    response: JsonObject = field(default_factory=dict)
    """Overrides of the session's settings, for this response only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseCancel(ClientEvent):
    """Stop the response in progress."""

    type = "response.cancel"
    response_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemindersRestore(ClientEvent):
    """Timers and reminders of an earlier session of this conversation, as `session.reminders.updated` had them."""

    type = "session.reminders.restore"
    reminders: list[JsonObject]
    """Each with the time that is left of it; one whose time has passed meanwhile is due in 0 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFinish(ClientEvent):
    """Nothing more will come: finish what is under way, say `session.finished`, close."""

    type = "session.finish"


CLIENT_EVENTS: dict[str, type[ClientEvent]] = _by_type(ClientEvent)


def parse_client_event(text: str) -> ClientEvent:
    """Read one JSON text frame.

    Raises:
        EventError: not JSON, not an object, too deep, an unknown type, or a field missing or of the wrong type.
    """
    return client_event_of(parse_fields(text))


def client_event_of(message: Fields) -> ClientEvent:
    """The event that a message is.

    Raises:
        EventError: as `parse_client_event`, but for JSON.
    """
    kind = message.message.get("type")
    if kind == AudioAppend.type:  # fifty a second: no walk over a long string of base64
        return AudioAppend(audio=message.base64("audio"), event_id=message.event_id)
    message = tidy(message)
    cls = CLIENT_EVENTS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise EventError(
            f"Unknown event type {json.dumps(kind)[:80]}.",
            code="unknown_event_type",
            param="type",
            event_id=message.event_id,
        )
    return cls.from_wire(message)


# ── Server events ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """Something the server says."""

    type: ClassVar[str]
    event_id: str = ""
    """Identifier of the event; the session sets it as the last thing."""

    def to_wire(self) -> JsonObject:
        """The event as a JSON-ready dictionary; fields that are None are left out."""
        wire: JsonObject = {"type": self.type, "event_id": self.event_id}
        for name in _field_names(type(self)):
            value = getattr(self, name)
            if value is not None:
                wire[name] = value
        return wire


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}


def _field_names(cls: type[ServerEvent]) -> tuple[str, ...]:
    names = _FIELD_NAMES.get(cls)
    if names is None:
        names = _FIELD_NAMES[cls] = tuple(f.name for f in fields(cls) if f.name != "event_id")
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent(ServerEvent):
    """A request was refused or something failed; the session lives on unless `session.closing` follows."""

    type = "error"
    code: str
    message: str
    error_type: str = "invalid_request_error"
    """`invalid_request_error` when the client can do better, `server_error` when it cannot."""
    param: str | None = None
    about: str | None = None
    """`event_id` of the client event that this is about."""

    def to_wire(self) -> JsonObject:
        return {
            "type": self.type,
            "event_id": self.event_id,
            "error": {
                "type": self.error_type,
                "code": self.code,
                "message": self.message,
                "param": self.param,
                "event_id": self.about,
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCreated(ServerEvent):
    """The session has begun; these are its settings."""

    type = "session.created"
    session: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUpdated(ServerEvent):
    """The settings after a `session.update`, all of them."""

    type = "session.updated"
    session: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResumable(ServerEvent):
    """The session survives the loss of its connection: it waits for its client to come back over another one."""

    type = "session.resumable"
    token: str
    """Secret with which the client comes back."""
    grace_s: float
    """Seconds that the session waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResumed(ServerEvent):
    """The session goes on over this connection; the events that the client has missed follow."""

    type = "session.resumed"
    received: int
    """Number of the client's events that have arrived so far, `input_audio_buffer.append` not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFinished(ServerEvent):
    """Everything is said after a `session.finish`; the server closes the connection."""

    type = "session.finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemindersUpdated(ServerEvent):
    """The timers and reminders that are set from now on, the next one first. One that is due is among them until it
    has been said: a client that loses the connection before brings it to the next session
    (`session.reminders.restore`)."""

    type = "session.reminders.updated"
    reminders: list[JsonObject]
    """Each with `id`, `name`, `text` and `due_in_ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClosing(ServerEvent):
    """The server is about to close the connection."""

    type = "session.closing"
    code: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStarted(ServerEvent):
    """The caller began to speak; playback in progress is expected to stop."""

    type = "input_audio_buffer.speech_started"
    audio_start_ms: int
    """Offset from the start of the session's audio, prefix padding included."""
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStopped(ServerEvent):
    """The caller's turn is over, or the sound was no speech."""

    type = "input_audio_buffer.speech_stopped"
    audio_end_ms: int
    item_id: str
    reason: str | None = None
    """`turn_invalid` when no reply follows."""
    echo: bool | None = None
    """True when the reply was found in the sound: its words may be the loudspeaker's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTimeout(ServerEvent):
    """The caller was silent for `idle_timeout_ms`; the assistant will speak."""

    type = "input_audio_buffer.timeout_triggered"
    audio_start_ms: int
    audio_end_ms: int
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioCommitted(ServerEvent):
    """The caller's audio has become a user item."""

    type = "input_audio_buffer.committed"
    item_id: str
    previous_item_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioCleared(ServerEvent):
    """Audio that was appended since the last commit is forgotten."""

    type = "input_audio_buffer.cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCreated(ServerEvent):
    """An item is in the conversation now."""

    type = "conversation.item.created"
    item: JsonObject
    previous_item_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRetrieved(ServerEvent):
    """The item that was asked for."""

    type = "conversation.item.retrieved"
    item: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDeleted(ServerEvent):
    """The item is out of the conversation."""

    type = "conversation.item.deleted"
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTruncated(ServerEvent):
    """The history now holds only what was heard of an assistant item."""

    type = "conversation.item.truncated"
    item_id: str
    content_index: int
    audio_end_ms: int
    transcript: str
    """The text that was heard."""
    unheard: str
    """The text after that, which was dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionDelta(ServerEvent):
    """The caller's words so far, while they speak."""

    type = "conversation.item.input_audio_transcription.delta"
    item_id: str
    content_index: int = 0
    text: str
    """The part that will not change any more."""
    stash: str
    """The part that still may. It goes on right behind `text`: the space between two words is its first character."""
    language: str = "en"
    emotion: str = "neutral"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionCompleted(ServerEvent):
    """The words of a user item."""

    type = "conversation.item.input_audio_transcription.completed"
    item_id: str
    content_index: int = 0
    transcript: str
    language: str = "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionFailed(ServerEvent):
    """The words of a user item could not be recognized."""

    type = "conversation.item.input_audio_transcription.failed"
    item_id: str
    content_index: int = 0
    error: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseCreated(ServerEvent):
    """A response begins; exactly one `response.done` ends it."""

    type = "response.created"
    response: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputItemAdded(ServerEvent):
    """A message or a function call of the response begins."""

    type = "response.output_item.added"
    response_id: str
    output_index: int
    item: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputItemDone(ServerEvent):
    """A message or a function call of the response is whole."""

    type = "response.output_item.done"
    response_id: str
    output_index: int
    item: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class OfContent(ServerEvent):
    """Fields shared by events about one content part of one output item."""

    response_id: str
    item_id: str
    output_index: int
    content_index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPartAdded(OfContent):
    """A part of a message begins: text or audio."""

    type = "response.content_part.added"
    part: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPartDone(OfContent):
    """A part of a message is whole."""

    type = "response.content_part.done"
    part: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(OfContent):
    """The next words of a reply that is not spoken."""

    type = "response.text.delta"
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDone(OfContent):
    """All words of a reply that is not spoken."""

    type = "response.text.done"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioTranscriptDelta(OfContent):
    """The next words of a spoken reply, ahead of their sound."""

    type = "response.audio_transcript.delta"
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioTranscriptDone(OfContent):
    """All words of a spoken reply."""

    type = "response.audio_transcript.done"
    transcript: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioDelta(OfContent):
    """The next piece of spoken reply, in the session's output format."""

    type = "response.audio.delta"
    audio: bytes
    heard_from: float | None = None
    """Time at which a caller who plays it as it arrives begins to hear it (the session's clock); not on the wire."""

    def to_wire(self) -> JsonObject:
        return {
            "type": self.type,
            "event_id": self.event_id,
            "response_id": self.response_id,
            "item_id": self.item_id,
            "output_index": self.output_index,
            "content_index": self.content_index,
            "delta": base64.b64encode(self.audio).decode("ascii"),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyWordTimes(OfContent):
    """When words are heard in the reply's audio, before that comes. Only where a session asked (`word_times`)."""

    type = "response.audio.words"
    words: list[JsonObject]
    """Each `text` (put together, they are the transcript), `start_ms` and `end_ms`: a word, or a sentence of a voice
    that does not know its words' times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioDone(OfContent):
    """The last audio of a spoken reply was sent."""

    type = "response.audio.done"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionArgumentsDelta(ServerEvent):
    """The next part of the arguments of a function call, which are JSON."""

    type = "response.function_call_arguments.delta"
    response_id: str
    item_id: str
    output_index: int
    call_id: str
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionArgumentsDone(ServerEvent):
    """The client is asked to run a function and to create an item `function_call_output` with its result."""

    type = "response.function_call_arguments.done"
    response_id: str
    item_id: str
    output_index: int
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class McpListBegun(ServerEvent):
    """A server is asked for its tools."""

    type = "mcp_list_tools.in_progress"
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class McpListCompleted(ServerEvent):
    """The item holds its tools."""

    type = "mcp_list_tools.completed"
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class McpListFailed(ServerEvent):
    """The server could not be asked: its tools are not offered."""

    type = "mcp_list_tools.failed"
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class McpArgumentsDone(ServerEvent):
    """The model calls a tool, which this server runs."""

    type = "response.mcp_call_arguments.done"
    response_id: str
    item_id: str
    output_index: int
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCallBegun(ServerEvent):
    """The tool runs."""

    type = "response.mcp_call.in_progress"
    item_id: str
    output_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCallCompleted(ServerEvent):
    """The tool has its output, which comes with the item."""

    type = "response.mcp_call.completed"
    item_id: str
    output_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCallFailed(ServerEvent):
    """The tool failed, or took too long."""

    type = "response.mcp_call.failed"
    item_id: str
    output_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAdded(ServerEvent):
    """The passage that a reply was taken from, in full; what is spoken leaves out what cannot be read aloud."""

    type = "response.source.added"
    response_id: str
    title: str
    """Title of the document."""
    text: str
    page: str
    """Page of this product's manual, as its address names it; empty for other documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseDone(ServerEvent):
    """The one terminal event of a response; nothing of that response follows it."""

    type = "response.done"
    response: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyDucked(ServerEvent):
    """Something is heard that may interrupt the reply: it is expected to be quieter until it is known what it was.

    `response.audio.restored` follows, or `input_audio_buffer.speech_started`, which cuts. Only where a session asked
    for it (`interruptions` "duck").
    """

    type = "response.audio.ducked"
    response_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRestored(ServerEvent):
    """It was no interruption: the reply goes on as loud as before.

    `audio_start_ms` of the item's sound is where the word begins at which it was ducked. On a media track it is told
    only where the reply was held, and goes on from there.
    """

    type = "response.audio.restored"
    response_id: str
    item_id: str | None = None
    audio_start_ms: int | None = None


SERVER_EVENTS: dict[str, type[ServerEvent]] = _by_type(ServerEvent)
