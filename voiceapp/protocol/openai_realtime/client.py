"""One session at a service of OpenAI's family: our events in its dialect, its events as ours, sans-I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from voiceapp.errors import InvalidParameter
from voiceapp.formats import identifier
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import SessionConfig, merge_response
from voiceapp.protocol.openai_realtime.agreed import AgreedSettings
from voiceapp.protocol.openai_realtime.asking import (
    asked_for,
    held_there,
    item_there,
    response_there,
    session_there,
)
from voiceapp.protocol.openai_realtime.awaited import Awaited
from voiceapp.protocol.openai_realtime.dialect import EXPIRED
from voiceapp.protocol.openai_realtime.hearing import (
    NAMES,
    error_of,
    item_of,
    part_of,
    response_of,
)
from voiceapp.protocol.openai_realtime.settings import PCM_RATE_HZ, REALTIME, TRANSCRIPTION
from voiceapp.protocol.openai_realtime.spoken import MAX_CHARACTERS, SpokenItems
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import JsonObject

Value = TypeVar("Value")

REMEMBERED = 32
"""Items, and changes of settings, that later events may still be about."""
_LOCAL = frozenset({ev.RemindersRestore.type})
"""Events that such a service does not have."""


class OpenAIService:
    """The dialect of one connection to the service."""

    def __init__(
        self, *, listens_only: bool = False, transcription_model: str = "", input_rate_hz: int = 16_000
    ) -> None:
        """`transcription_model` is the service's, empty for the one that a caller names;
        `input_rate_hz` is what `pcm16` means to the caller."""
        config = SessionConfig(
            model="",
            voice="",
            input_format=AudioFormat("pcm16", input_rate_hz),
            output_format=AudioFormat("pcm16", PCM_RATE_HZ),
            listens_only=listens_only,
        )
        self._agreed = AgreedSettings(config)
        self.own: list[JsonObject] = []
        """Events for the caller that are not the service's, to be taken by the owner."""
        self._kind = TRANSCRIPTION if listens_only else REALTIME
        self._transcription_model = transcription_model
        self._heard_words: OrderedDict[str, str] = OrderedDict()
        """Words of the caller, by item."""
        self._spoken = SpokenItems()
        self._functions: OrderedDict[str, str] = OrderedDict()
        """Names, by item."""
        self._awaited = Awaited()
        self._unnamed: OrderedDict[str, None] = OrderedDict()
        """Ids that events of the caller's were given here."""
        self._last_commit = ""
        """Id of the one that the end of the session asked for."""
        self.is_finishing = False
        """The caller wants the session to end, and was not told that it has."""
        self._says: Mapping[str, Callable[[JsonObject], list[JsonObject]]] = {
            ev.SessionUpdate.type: self._update,
            ev.ItemCreate.type: self._create_item,
            ev.ResponseCreate.type: self._create_response,
            ev.ImageAppend.type: self._refuse_image,
            ev.AudioAppend.type: self._append,
            ev.AudioCommit.type: self._commit,
            ev.AudioClear.type: self._clear,
            ev.SessionFinish.type: self._finish,
        }
        self._hears: Mapping[str, Callable[[JsonObject], JsonObject | None]] = {
            ev.SessionCreated.type: self._session_shown,
            ev.SessionUpdated.type: self._session_shown,
            ev.ErrorEvent.type: self._error,
            ev.SpeechStarted.type: self._speech_started,
            ev.SpeechStopped.type: self._speech_stopped,
            ev.AudioCommitted.type: self._committed,
            ev.AudioCleared.type: self._cleared,
            ev.ItemCreated.type: self._item,
            ev.ItemRetrieved.type: self._item,
            ev.ItemTruncated.type: self._truncated,
            ev.OutputItemAdded.type: self._item,
            ev.OutputItemDone.type: self._item,
            ev.ContentPartAdded.type: self._part,
            ev.ContentPartDone.type: self._part,
            ev.TranscriptionDelta.type: self._more_words,
            ev.TranscriptionCompleted.type: self._words_known,
            ev.TranscriptionFailed.type: self._words_known,
            ev.ResponseCreated.type: self._response,
            ev.ResponseDone.type: self._response,
            ev.AudioTranscriptDelta.type: self._said,
            ev.TextDelta.type: self._said,
            ev.FunctionArgumentsDone.type: self._function_named,
        }

    @property
    def config(self) -> SessionConfig:
        return self._agreed.config

    @property
    def source(self) -> AudioFormat:
        return self._agreed.source

    @property
    def sink(self) -> AudioFormat:
        return self._agreed.sink

    # ── From the caller ──────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, wire: JsonObject) -> list[JsonObject]:
        """An event of ours, audio left as it is, in the words of the service: none, or one."""
        kind = wire["type"]
        if kind in _LOCAL:
            return []
        says = self._says.get(kind)
        return [wire] if says is None else says(wire)

    def _update(self, wire: JsonObject) -> list[JsonObject]:
        patch = wire["session"]
        try:
            update_id = self._agreed.change(patch, wire.get("event_id"))
        except InvalidParameter as refused:
            return self._refuse(wire, refused.message, refused.param)
        about, asked = asked_for(patch), self.config
        if self._transcription_model:
            asked = replace(asked, transcription_model=self._transcription_model)
        session = session_there(asked, about, self.source, self.sink, kind=self._kind)
        return [{"type": ev.SessionUpdate.type, "event_id": update_id, "session": session}]

    def _create_item(self, wire: JsonObject) -> list[JsonObject]:
        return [{**wire, "item": item_there(wire.get("item"))}]

    def _create_response(self, wire: JsonObject) -> list[JsonObject]:
        patch = wire.get("response") or {}
        try:
            config = merge_response(self.config, patch)
        except InvalidParameter as refused:
            return self._refuse(wire, refused.message, refused.param)
        wire = self._named(wire)
        self._awaited.response_asked(wire["event_id"])
        response = response_there(config, patch)
        return [{**wire, "response": response} if response else {n: v for n, v in wire.items() if n != "response"}]

    def _append(self, wire: JsonObject) -> list[JsonObject]:
        self._awaited.has_uncommitted = True
        return [wire]

    def _commit(self, wire: JsonObject) -> list[JsonObject]:
        wire = self._named(wire)
        self._awaited.commit_asked(wire["event_id"])
        return [wire]

    def _clear(self, wire: JsonObject) -> list[JsonObject]:
        self._awaited.cleared()
        return [wire]

    def _named(self, wire: JsonObject) -> JsonObject:
        """An event with an id, so that an error can be known to be about it."""
        if isinstance(wire.get("event_id"), str):
            return wire
        _remember(self._unnamed, event_id := identifier("event"), None)
        return {**wire, "event_id": event_id}

    def _refuse_image(self, wire: JsonObject) -> list[JsonObject]:
        return self._refuse(wire, "The service that runs this model takes images in items only.", "image")

    def _finish(self, _: JsonObject) -> list[JsonObject]:
        self.is_finishing = True
        is_manual = self.config.turn_detection is None
        if self._awaited.has_uncommitted if is_manual else self._awaited.is_speaking:
            found = self._commit({"type": ev.AudioCommit.type})
            self._last_commit = found[0]["event_id"]
            return found
        self._end_if_done()
        return []

    def give_up(self) -> None:
        """End the session without the results that it waits for."""
        self._awaited.clear()
        self._end_if_done()

    def _refuse(self, wire: JsonObject, message: str, param: str | None) -> list[JsonObject]:
        about = wire.get("event_id")
        error = ev.ErrorEvent(
            event_id=identifier("event"), code="invalid_value", message=message, param=param, about=about
        )
        self.own.append(error.to_wire())
        return []

    def _end_if_done(self) -> None:
        if self.is_finishing and not self._awaited:
            self.is_finishing = False
            self.own.append(ev.SessionFinished(event_id=identifier("event")).to_wire())

    # ── To the caller ────────────────────────────────────────────────────────────────────────────────────────────────

    def hear(self, wire: JsonObject) -> list[JsonObject]:
        """An event of the service's, audio left as it is, as ours: none, or one."""
        kind = str(NAMES.get(wire["type"], wire["type"]))
        ours: JsonObject | None = {**wire, "type": kind}
        if (hears := self._hears.get(kind)) is not None:
            ours = hears({**wire, "type": kind})
        return [] if ours is None else [ours]

    def sounded(self, item_id: object, n_bytes: int) -> None:
        """Audio of an item of the assistant's came."""
        self._spoken.sounded(item_id, n_bytes)

    def _session_shown(self, wire: JsonObject) -> JsonObject | None:
        session = wire.get("session")
        if not isinstance(session, dict):
            return None
        config = self._agreed.take(session, is_answer=wire["type"] == ev.SessionUpdated.type)
        held = held_there(config.to_wire(), kind=self._kind)
        return {**wire, "session": {"id": str(session.get("id")), "object": "realtime.session", **held}}

    def _error(self, wire: JsonObject) -> JsonObject | None:
        ours = error_of(wire)
        error = ours.get("error")
        if not isinstance(error, dict):
            return ours
        if error.get("code") == "session_expired":  # of the session there; the conversation goes on in another one
            return ev.SessionClosing(event_id=identifier("event"), code=EXPIRED, reason="").to_wire()
        self._awaited.refused(error)
        self._end_if_done()
        if (update_id := self._agreed.refused(error)) is not None:
            callers, param = self._agreed.take_back(update_id), error.get("param") or "session"
            return {**ours, "error": {**error, "event_id": callers, "param": param}}
        about = error.get("event_id")
        if about is None and str(error.get("code")).startswith("input_audio_buffer_commit"):
            about = self._last_commit
        if not isinstance(about, str) or not about:
            return ours
        if about == self._last_commit:  # nothing was left to commit, or the service did so by itself
            return None
        return {**ours, "error": {**error, "event_id": None}} if about in self._unnamed else ours

    def _speech_started(self, wire: JsonObject) -> JsonObject:
        self._awaited.is_speaking = True
        return wire

    def _speech_stopped(self, wire: JsonObject) -> JsonObject:
        if wire.get("reason"):  # nothing of it is committed
            self._awaited.is_speaking = False
        return wire

    def _committed(self, wire: JsonObject) -> JsonObject:
        turns, listens_only = self.config.turn_detection, self.config.listens_only
        is_answered = turns is not None and turns.create_response and not listens_only and not self._last_commit
        words = listens_only or self.is_finishing
        self._awaited.committed(str(wire.get("item_id")), words=words, response=is_answered)
        return wire

    def _cleared(self, wire: JsonObject) -> JsonObject:
        self._awaited.cleared()
        return wire

    def _item(self, wire: JsonObject) -> JsonObject | None:
        item = item_of(wire.get("item"))
        if item is None:
            return None
        if item["type"] == "function_call" and isinstance(item.get("name"), str):
            _remember(self._functions, item["id"], item["name"])
        return {**wire, "item": item}

    def _part(self, wire: JsonObject) -> JsonObject | None:
        part = wire.get("part")
        return {**wire, "part": part_of(part)} if isinstance(part, dict) else None

    def _more_words(self, wire: JsonObject) -> JsonObject:
        """Ours has all words so far."""
        item_id, delta = str(wire.get("item_id")), wire.get("delta")
        if not isinstance(delta, str):
            return wire
        words = (self._heard_words.get(item_id, "") + delta)[:MAX_CHARACTERS]
        _remember(self._heard_words, item_id, words)
        return {**wire, "text": words, "stash": "", "language": self._language}

    def _words_known(self, wire: JsonObject) -> JsonObject:
        item_id = str(wire.get("item_id"))
        self._heard_words.pop(item_id, None)
        self._awaited.words_known(item_id, are_any=bool(wire.get("transcript")))
        self._end_if_done()
        return {"language": self._language, **wire}

    def _response(self, wire: JsonObject) -> JsonObject | None:
        response = response_of(wire.get("response"))
        if response is None:
            return None
        if wire["type"] == ev.ResponseCreated.type:
            response["status"] = "in_progress"
            self._awaited.response_begun(response["id"])
        else:
            self._awaited.response_done(response["id"])
            self._end_if_done()
        return {**wire, "response": response}

    def _said(self, wire: JsonObject) -> JsonObject:
        self._spoken.said(wire.get("item_id"), wire.get("delta"))
        return wire

    def _truncated(self, wire: JsonObject) -> JsonObject:
        """Ours says which words were heard; where the service does not, they are estimated from how long they took."""
        if isinstance(wire.get("transcript"), str):
            return wire
        heard, unheard = self._spoken.cut(wire.get("item_id"), wire.get("audio_end_ms"), self.sink)
        return {**wire, "transcript": heard, "unheard": unheard}

    def _function_named(self, wire: JsonObject) -> JsonObject:
        return {"name": self._functions.get(str(wire.get("item_id")), ""), **wire}

    @property
    def _language(self) -> str:
        return self.config.transcription_language or "en"


def _remember(known: OrderedDict[str, Value], key: str, value: Value) -> None:
    known[key] = value
    while len(known) > REMEMBERED:
        known.popitem(last=False)
