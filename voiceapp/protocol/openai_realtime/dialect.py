"""One session in OpenAI's current dialect: its client's events read as ours, and ours written as its."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from voiceapp.formats import identifier
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.openai_realtime.lengths import Lengths
from voiceapp.protocol.openai_realtime.refusals import refusal_to
from voiceapp.protocol.openai_realtime.settings import (
    PCM_RATE_HZ,
    REALTIME,
    TRANSCRIPTION,
    format_to,
    modalities_to,
    session_to,
    settings_from,
)
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import EventError, Fields, JsonObject, parse_fields, tidy

RENAMED = {
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
    "response.text.delta": "response.output_text.delta",
    "response.text.done": "response.output_text.done",
    "response.audio.ducked": "response.output_audio.ducked",
    "response.audio.restored": "response.output_audio.restored",
    "response.audio.words": "response.output_audio.words",
}
"""Events that differ by their names alone. The last three are not in that dialect; who asks for them gets them."""
TRACK_FORMAT: JsonObject = {"type": "audio/pcm", "rate": PCM_RATE_HZ}
"""Format that a session on a media track shows, whatever the track's codec is."""
EXPIRED = 4000
"""Close code of a session that has reached its longest duration; that dialect has an error for it."""
PARTS = {"audio": "output_audio", "text": "output_text"}
"""Types of content parts of the assistant's items."""


class OpenAIRealtimeDialect:
    def __init__(self, *, kind: str = REALTIME, has_track: bool = False) -> None:
        """`kind`: a conversation, or transcription only; `has_track`: audio goes out on a media track."""
        self._kind = kind
        self._has_track = has_track
        self._output_format = TRACK_FORMAT
        self._previous: dict[str, str | None] = {}
        """The item before each item of the response under way."""
        self._words: dict[str, str] = {}
        """Words that were told, of utterances under way."""
        self._lengths = Lengths()
        self._asked: tuple[str | None, str] = (None, "")
        """Id and type of the event that was read last, `input_audio_buffer.append` left out."""
        self._sounding = ""
        """Id of the response whose audio goes out on the track."""
        self._out_of_band = ""
        """Id of the latest response whose items are not of the conversation."""

    # ── From the client ──────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, text: str) -> ev.ClientEvent | None:
        fields = parse_fields(text)
        kind = fields.message.get("type")
        if kind == ev.AudioAppend.type:  # fifty a second
            return self._lengths.appended(ev.client_event_of(fields))
        fields = tidy(fields)
        self._asked = (fields.event_id, str(kind))
        if kind == "output_audio_buffer.clear":
            return ev.ResponseCancel(event_id=fields.event_id) if self._sounding else None
        if kind == ev.SessionUpdate.type:
            return ev.SessionUpdate(session=self._session(fields), event_id=fields.event_id)
        if kind == ev.ResponseCreate.type:
            return ev.ResponseCreate(response=self._response(fields), event_id=fields.event_id)
        event = ev.client_event_of(fields)
        if isinstance(event, ev.ItemCreate):
            self._lengths.sent(event.item)
        return event

    def _session(self, fields: Fields) -> JsonObject:
        given = fields.object("session")
        kind = given.get("type")
        if kind not in (None, self._kind):
            wanted = "a transcription" if self._kind == TRANSCRIPTION else "a conversation"
            raise EventError(
                f"session.type must be {self._kind}: this session is {wanted}.",
                code="invalid_value",
                param="session.type",
                event_id=fields.event_id,
            )
        return _about(fields, settings_from, given, "session")

    def _response(self, fields: Fields) -> JsonObject:
        given = fields.maybe_object("response") or {}
        if given.get("conversation") not in (None, "auto", "none"):
            raise EventError(
                "conversation must be auto or none.",
                code="invalid_value",
                param="response.conversation",
                event_id=fields.event_id,
            )
        patch = _about(fields, settings_from, given, "response")
        patch.update({name: given[name] for name in ("conversation", "input") if name in given})
        if voice := patch.pop("audio", {}).get("output", {}).get("voice"):
            patch["voice"] = voice
        return patch

    # ── To the client ────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, event: ev.ServerEvent) -> list[JsonObject]:
        self._lengths.see(event)
        if special := _WRITERS.get(type(event)):
            return special(self, event)
        wire = event.to_wire()
        wire["type"] = RENAMED.get(event.type, event.type)
        return [wire]

    def _nothing(self, event: ev.ServerEvent) -> list[JsonObject]:
        return []

    def _session_shown(self, event: ev.SessionCreated | ev.SessionUpdated) -> list[JsonObject]:
        if not self._has_track:
            audio = event.session["audio"]
            self._output_format = format_to(audio["output"]["format"])
            given = audio["input"]["format"]
            self._lengths.format = AudioFormat(given["type"], given["sample_rate"])
        return [{**event.to_wire(), "session": self._shown(event.session)}]

    def _shown(self, ours: JsonObject) -> JsonObject:
        shown = session_to(ours, self._kind)
        if self._has_track:  # the formats are the track's own
            for side in shown["audio"].values():
                side["format"] = TRACK_FORMAT
        return shown

    def _refused(self, event: ev.ErrorEvent) -> list[JsonObject]:
        about, asked = self._asked
        return [refusal_to(event, asked if event.about == about else "").to_wire()]

    def _closing(self, event: ev.SessionClosing) -> list[JsonObject]:
        """The close code says the rest; a client that reads of an error before the end would give up too early."""
        if event.code != EXPIRED:
            return []
        return [ev.ErrorEvent(event_id=event.event_id, code="session_expired", message=event.reason).to_wire()]

    def _item_created(self, event: ev.ItemCreated) -> list[JsonObject]:
        item = item_to(event.item)
        about = {"previous_item_id": event.previous_item_id, "item": item}
        added = {"type": "conversation.item.added", "event_id": event.event_id, **about}
        if item["status"] == "in_progress":
            self._previous[item["id"]] = event.previous_item_id
            return [added]
        return [added, {"type": "conversation.item.done", "event_id": identifier("event"), **about}]

    def _item_retrieved(self, event: ev.ItemRetrieved) -> list[JsonObject]:
        return [{**event.to_wire(), "item": item_to(event.item)}]

    def _item_truncated(self, event: ev.ItemTruncated) -> list[JsonObject]:
        wire = event.to_wire()
        del wire["transcript"], wire["unheard"]
        return [wire]

    def _committed(self, event: ev.AudioCommitted) -> list[JsonObject]:
        return [{**event.to_wire(), "previous_item_id": event.previous_item_id}]

    def _speech_stopped(self, event: ev.SpeechStopped) -> list[JsonObject]:
        return [replace(event, reason=None, echo=None).to_wire()]

    def _words_so_far(self, event: ev.TranscriptionDelta) -> list[JsonObject]:
        told = self._words.get(event.item_id, "")
        if not event.text.startswith(told) or event.text == told:
            return []
        self._words[event.item_id] = event.text
        return [self._more_words(event, event.text[len(told) :])]

    def _words_known(self, event: ev.TranscriptionCompleted) -> list[JsonObject]:
        told = self._words.pop(event.item_id, "")
        rest = event.transcript[len(told) :] if event.transcript.startswith(told) else ""
        usage = {"type": "duration", "seconds": self._lengths.take(event.item_id) / 1000}
        whole = {
            "type": event.type,
            "event_id": event.event_id,
            "item_id": event.item_id,
            "content_index": event.content_index,
            "transcript": event.transcript,
            "usage": usage,
        }
        return [*([self._more_words(event, rest)] if rest else []), whole]

    def _more_words(self, event: ev.TranscriptionDelta | ev.TranscriptionCompleted, delta: str) -> JsonObject:
        return {
            "type": ev.TranscriptionDelta.type,
            "event_id": identifier("event"),
            "item_id": event.item_id,
            "content_index": event.content_index,
            "delta": delta,
        }

    def _words_unknown(self, event: ev.TranscriptionFailed) -> list[JsonObject]:
        self._words.pop(event.item_id, None)
        self._lengths.take(event.item_id)
        return [event.to_wire()]

    def _response_created(self, event: ev.ResponseCreated) -> list[JsonObject]:
        if event.response["conversation_id"] is None:
            self._out_of_band = event.response["id"]
        return [{**event.to_wire(), "response": self._response_to(event.response)}]

    def _output_item(self, event: ev.OutputItemAdded | ev.OutputItemDone) -> list[JsonObject]:
        item = item_to(event.item)
        wire = {**event.to_wire(), "item": item}
        if isinstance(event, ev.OutputItemAdded):
            return [wire]
        if event.response_id == self._out_of_band:
            return [wire]
        done = {
            "type": "conversation.item.done",
            "event_id": identifier("event"),
            "previous_item_id": self._previous.pop(item["id"], None),
            "item": item,
        }
        return [done, wire]

    def _audio(self, event: ev.AudioDelta) -> list[JsonObject]:
        if not self._has_track:
            return [{**event.to_wire(), "type": RENAMED[event.type]}]
        if self._sounding == event.response_id:
            return []
        self._sounding = event.response_id
        return [self._of_track("started")]

    def _response_done(self, event: ev.ResponseDone) -> list[JsonObject]:
        response = self._response_to(event.response)
        events = [{**event.to_wire(), "response": response}]
        if self._sounding:
            events.append(self._of_track("cleared" if response["status"] == "cancelled" else "stopped"))
            self._sounding = ""
        return events

    def _of_track(self, what: str) -> JsonObject:
        about = {"event_id": identifier("event"), "response_id": self._sounding}
        return {"type": f"output_audio_buffer.{what}", **about}

    def _response_to(self, ours: JsonObject) -> JsonObject:
        details = ours["status_details"]
        if details and details["type"] == "failed":  # its reasons are codes of ours
            details = {name: value for name, value in details.items() if name != "reason"}
        audio = {"output": {"format": self._output_format, "voice": ours["voice"]}}
        return {
            "object": ours["object"],
            "id": ours["id"],
            "status": ours["status"],
            "status_details": details,
            "output": [item_to(item) for item in ours["output"]],
            "conversation_id": ours["conversation_id"],
            "output_modalities": modalities_to(ours["modalities"]),
            "max_output_tokens": "inf",
            "audio": audio,
            "usage": usage_to(ours["usage"]),
            "metadata": ours.get("metadata"),
        }


_WRITERS: dict[type[ev.ServerEvent], Callable[[Any, Any], list[JsonObject]]] = {
    ev.SessionCreated: OpenAIRealtimeDialect._session_shown,
    ev.SessionUpdated: OpenAIRealtimeDialect._session_shown,
    ev.SessionFinished: OpenAIRealtimeDialect._nothing,
    ev.RemindersUpdated: OpenAIRealtimeDialect._nothing,
    ev.SessionResumable: OpenAIRealtimeDialect._nothing,
    ev.SessionResumed: OpenAIRealtimeDialect._nothing,
    ev.SessionClosing: OpenAIRealtimeDialect._closing,
    ev.ErrorEvent: OpenAIRealtimeDialect._refused,
    ev.SpeechStopped: OpenAIRealtimeDialect._speech_stopped,
    ev.AudioCommitted: OpenAIRealtimeDialect._committed,
    ev.ItemCreated: OpenAIRealtimeDialect._item_created,
    ev.ItemRetrieved: OpenAIRealtimeDialect._item_retrieved,
    ev.ItemTruncated: OpenAIRealtimeDialect._item_truncated,
    ev.TranscriptionDelta: OpenAIRealtimeDialect._words_so_far,
    ev.TranscriptionCompleted: OpenAIRealtimeDialect._words_known,
    ev.TranscriptionFailed: OpenAIRealtimeDialect._words_unknown,
    ev.ResponseCreated: OpenAIRealtimeDialect._response_created,
    ev.OutputItemAdded: OpenAIRealtimeDialect._output_item,
    ev.OutputItemDone: OpenAIRealtimeDialect._output_item,
    ev.AudioDelta: OpenAIRealtimeDialect._audio,
    ev.SourceAdded: OpenAIRealtimeDialect._nothing,
    ev.ResponseDone: OpenAIRealtimeDialect._response_done,
}
"""Events that differ by more than their names; all others go out as they are."""


def item_to(ours: JsonObject) -> JsonObject:
    if ours.get("role") != "assistant":
        return ours
    return {**ours, "content": [{**part, "type": PARTS.get(part["type"], part["type"])} for part in ours["content"]]}


def usage_to(ours: JsonObject | None) -> JsonObject | None:
    """Usage of a response in OpenAI's fields; cached tokens are 0 unless they are given."""
    if ours is None:
        return None
    counts = {name: ours[name] for name in ("total_tokens", "input_tokens", "output_tokens")}
    cached = {"cached_tokens": 0, "cached_tokens_details": {"text_tokens": 0, "audio_tokens": 0, "image_tokens": 0}}
    return {
        **counts,
        "input_token_details": {**cached, **ours["input_token_details"]},
        "output_token_details": ours["output_token_details"],
    }


def _about(fields: Fields, read: Callable[..., JsonObject], *given: Any) -> JsonObject:
    """Call `read`; an error that it raises names the client's event."""
    try:
        return read(*given)
    except EventError as refused:
        refused.event_id = fields.event_id
        raise
