"""One session at a service of OpenAI's family: our events in its dialect, its events as ours, sans-I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from voiceapp.errors import InvalidParameter
from voiceapp.formats import identifier
from voiceapp.protocol import events as ev
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import SessionConfig, merge, merge_response
from voiceapp.protocol.openai_realtime.asking import (
    asked_for,
    format_there,
    item_there,
    older_session_there,
    response_there,
    session_there,
)
from voiceapp.protocol.openai_realtime.dialect import EXPIRED
from voiceapp.protocol.openai_realtime.hearing import (
    NAMES,
    error_of,
    format_of,
    item_of,
    part_of,
    response_of,
    settings_after,
)
from voiceapp.protocol.openai_realtime.settings import PCM_RATE_HZ, REALTIME, TRANSCRIPTION
from voiceapp.protocol.reading import JsonObject

Value = TypeVar("Value")

REMEMBERED = 32
"""Items, and changes of settings, that later events may still be about."""
MAX_CHARACTERS = 200_000
"""Of the words of one item."""
MOST_MS = 2**53
"""Of a time that the service tells."""
_LOCAL = frozenset({ev.RemindersRestore.type})
"""What such a service would not know what to do with."""


@dataclass(slots=True)
class _Spoken:
    """An item of the assistant's."""

    words: str = ""
    sound_bytes: int = 0


class OpenAIService:
    """The dialect of one connection to the service."""

    def __init__(
        self, *, is_beta: bool, listens_only: bool = False, transcription_model: str = "", input_rate_hz: int = 16_000
    ) -> None:
        """`is_beta`: the older dialect; `transcription_model` is the service's, empty for the one that a caller names;
        `input_rate_hz` is what `pcm16` means to the caller."""
        self.config = SessionConfig(
            model="",
            voice="",
            input_format=AudioFormat("pcm16", input_rate_hz),
            output_format=AudioFormat("pcm16", PCM_RATE_HZ),
            listens_only=listens_only,
        )
        """The settings as the caller has them."""
        self.source = self.sink = AudioFormat("pcm16", PCM_RATE_HZ)
        """In which the service takes audio, and gives it."""
        self.own: list[JsonObject] = []
        """What the caller is to be told without a word of the service's, to be taken by the owner."""
        self._is_beta = is_beta
        self._kind = TRANSCRIPTION if listens_only else REALTIME
        self._transcription_model = transcription_model
        self._updates: OrderedDict[str, tuple[str | None, SessionConfig]] = OrderedDict()
        """By our id of a change: the caller's, and the settings before."""
        self._heard_words: OrderedDict[str, str] = OrderedDict()
        """Of the caller, by item."""
        self._spoken: OrderedDict[str, _Spoken] = OrderedDict()
        self._functions: OrderedDict[str, str] = OrderedDict()
        """Names, by item."""
        self._awaited: set[str] = set()
        """What the session may not end before: responses, and utterances that are to be transcribed."""
        self._is_finishing = False
        self._says: Mapping[str, Callable[[JsonObject], list[JsonObject]]] = {
            ev.SessionUpdate.type: self._update,
            ev.ItemCreate.type: self._create_item,
            ev.ResponseCreate.type: self._create_response,
            ev.ImageAppend.type: self._refuse_image,
            ev.SessionFinish.type: self._finish,
        }
        self._hears: Mapping[str, Callable[[JsonObject], JsonObject | None]] = {
            ev.SessionCreated.type: self._session_shown,
            ev.SessionUpdated.type: self._session_shown,
            ev.ErrorEvent.type: self._error,
            ev.AudioCommitted.type: self._committed,
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

    # ── From the caller ──────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, wire: JsonObject) -> list[JsonObject]:
        """An event of ours, audio left as it is, in the words of the service: none, or one."""
        kind = wire["type"]
        if kind in _LOCAL:
            return []
        says = self._says.get(kind)
        return [wire] if says is None else says(wire)

    def _update(self, wire: JsonObject) -> list[JsonObject]:
        patch, before = wire["session"], self.config
        try:
            self.config = merge(before, patch)
        except InvalidParameter as refused:
            return self._refuse(wire, refused.message, refused.param)
        asked = self.config
        if self._transcription_model:
            asked = replace(asked, transcription_model=self._transcription_model)
        about = asked_for(patch)
        self.source, self.sink = format_there(asked.input_format), format_there(asked.output_format)
        if self._is_beta:
            session = older_session_there(asked, about, self.source, self.sink)
        else:
            session = session_there(asked, about, self.source, self.sink, kind=self._kind)
        update_id = identifier("event")
        _remember(self._updates, update_id, (wire.get("event_id"), before))
        return [{"type": ev.SessionUpdate.type, "event_id": update_id, "session": session}]

    def _create_item(self, wire: JsonObject) -> list[JsonObject]:
        return [{**wire, "item": item_there(wire.get("item"), is_beta=self._is_beta)}]

    def _create_response(self, wire: JsonObject) -> list[JsonObject]:
        patch = wire.get("response") or {}
        try:
            config = merge_response(self.config, patch)
        except InvalidParameter as refused:
            return self._refuse(wire, refused.message, refused.param)
        self._awaited.add("")
        response = response_there(config, patch, is_beta=self._is_beta)
        return [{**wire, "response": response} if response else {n: v for n, v in wire.items() if n != "response"}]

    def _refuse_image(self, wire: JsonObject) -> list[JsonObject]:
        return self._refuse(wire, "The service that runs this model takes images in items only.", "image")

    def _finish(self, _: JsonObject) -> list[JsonObject]:
        self._is_finishing = True
        self._end_if_done()
        return []

    def _refuse(self, wire: JsonObject, message: str, param: str | None) -> list[JsonObject]:
        about = wire.get("event_id")
        error = ev.ErrorEvent(
            event_id=identifier("event"), code="invalid_value", message=message, param=param, about=about
        )
        self.own.append(error.to_wire())
        return []

    def _end_if_done(self) -> None:
        if self._is_finishing and not self._awaited:
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
        if isinstance(item_id, str):
            self._spoken_in(item_id).sound_bytes += n_bytes

    def _session_shown(self, wire: JsonObject) -> JsonObject | None:
        session = wire.get("session")
        if not isinstance(session, dict):
            return None
        if wire["type"] == ev.SessionUpdated.type and self._updates:
            self._updates.popitem(last=False)
        self.source, self.sink = format_of(session, "input", self.source), format_of(session, "output", self.sink)
        self.config = settings_after(self.config, session)
        shown = {"id": str(session.get("id")), "object": "realtime.session", **self.config.to_wire()}
        return {**wire, "session": shown}

    def _error(self, wire: JsonObject) -> JsonObject:
        ours = error_of(wire)
        error = ours.get("error")
        if not isinstance(error, dict):
            return ours
        if error.get("code") == "session_expired":  # of the session there; the conversation goes on in another one
            return ev.SessionClosing(event_id=identifier("event"), code=EXPIRED, reason="").to_wire()
        about = error.get("event_id")
        if isinstance(about, str) and about in self._updates:
            callers, self.config = self._updates.pop(about)
            ours = {**ours, "error": {**error, "event_id": callers}}
        self._awaited.discard("")
        self._end_if_done()
        return ours

    def _committed(self, wire: JsonObject) -> JsonObject:
        if self.config.listens_only:
            self._awaited.add(str(wire.get("item_id")))
        elif self.config.turn_detection is not None and self.config.turn_detection.create_response:
            self._awaited.add("")
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
        self._awaited.discard(item_id)
        self._end_if_done()
        return {"language": self._language, **wire}

    def _response(self, wire: JsonObject) -> JsonObject | None:
        response = response_of(wire.get("response"))
        if response is None:
            return None
        self._awaited.discard("")
        if wire["type"] == ev.ResponseCreated.type:
            response["status"] = "in_progress"
            self._awaited.add(response["id"])
        else:
            self._awaited.discard(response["id"])
            self._end_if_done()
        return {**wire, "response": response}

    def _said(self, wire: JsonObject) -> JsonObject:
        item_id, delta = wire.get("item_id"), wire.get("delta")
        if isinstance(item_id, str) and isinstance(delta, str):
            spoken = self._spoken_in(item_id)
            spoken.words = (spoken.words + delta)[:MAX_CHARACTERS]
        return wire

    def _truncated(self, wire: JsonObject) -> JsonObject:
        """Ours says which words were heard; where the service does not, they are estimated from how long they took."""
        if isinstance(wire.get("transcript"), str):
            return wire
        spoken = self._spoken.get(str(wire.get("item_id")), _Spoken())
        whole_ms, heard_ms = self.sink.wire_ms(spoken.sound_bytes), wire.get("audio_end_ms")
        share = max(0, min(heard_ms, MOST_MS)) / whole_ms if isinstance(heard_ms, int) and whole_ms else 1.0
        heard = spoken.words
        if share < 1:
            heard = heard[: max(0, int(len(heard) * share))].rpartition(" ")[0]
        return {**wire, "transcript": heard, "unheard": spoken.words[len(heard) :]}

    def _function_named(self, wire: JsonObject) -> JsonObject:
        return {"name": self._functions.get(str(wire.get("item_id")), ""), **wire}

    def _spoken_in(self, item_id: str) -> _Spoken:
        if item_id not in self._spoken:
            _remember(self._spoken, item_id, _Spoken())
        return self._spoken[item_id]

    @property
    def _language(self) -> str:
        return self.config.transcription_language or "en"


def _remember(known: OrderedDict[str, Value], key: str, value: Value) -> None:
    known[key] = value
    while len(known) > REMEMBERED:
        known.popitem(last=False)
