"""One session at a service of OpenAI's family: our events in its dialect, its events as ours, sans-I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
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
    is_about_settings,
    item_of,
    part_of,
    response_of,
    settings_after,
)
from voiceapp.protocol.openai_realtime.settings import PCM_RATE_HZ, REALTIME, TRANSCRIPTION
from voiceapp.protocol.openai_realtime.spoken import MAX_CHARACTERS, SpokenItems
from voiceapp.protocol.reading import JsonObject

Value = TypeVar("Value")

REMEMBERED = 32
"""Items, and changes of settings, that later events may still be about."""
_LOCAL = frozenset({ev.RemindersRestore.type})
"""What such a service would not know what to do with."""


@dataclass(slots=True)
class _Update:
    """A change of settings that the service has not answered."""

    about: str | None
    """The caller's id of it."""
    patch: JsonObject
    before: tuple[SessionConfig, AudioFormat, AudioFormat]
    """The settings and the service's formats without it."""


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
        self._updates: OrderedDict[str, _Update] = OrderedDict()
        """By our id."""
        self._heard_words: OrderedDict[str, str] = OrderedDict()
        """Of the caller, by item."""
        self._spoken = SpokenItems()
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
        update = _Update(wire.get("event_id"), wire["session"], self._settings)
        try:
            self._apply(update)
        except InvalidParameter as refused:
            return self._refuse(wire, refused.message, refused.param)
        about, asked = asked_for(update.patch), self._asked
        if self._is_beta:
            session = older_session_there(asked, about, self.source, self.sink)
        else:
            session = session_there(asked, about, self.source, self.sink, kind=self._kind)
        update_id = identifier("event")
        _remember(self._updates, update_id, update)
        return [{"type": ev.SessionUpdate.type, "event_id": update_id, "session": session}]

    @property
    def _settings(self) -> tuple[SessionConfig, AudioFormat, AudioFormat]:
        return self.config, self.source, self.sink

    @property
    def _asked(self) -> SessionConfig:
        """The settings as the service is asked for them."""
        model = self._transcription_model
        return replace(self.config, transcription_model=model) if model else self.config

    def _apply(self, update: _Update) -> None:
        """Take a change that the service is asked for as made.

        Raises:
            InvalidParameter: if there is no such setting.
        """
        update.before = self._settings
        self.config = merge(self.config, update.patch)
        self.source, self.sink = format_there(self.config.input_format), format_there(self.config.output_format)

    def _apply_pending(self) -> None:
        for update in self._updates.values():
            with suppress(InvalidParameter):  # it was read with a change that was refused since
                self._apply(update)

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
        self._spoken.sounded(item_id, n_bytes)

    def _session_shown(self, wire: JsonObject) -> JsonObject | None:
        session = wire.get("session")
        if not isinstance(session, dict):
            return None
        if wire["type"] == ev.SessionUpdated.type and self._updates:
            self._updates.popitem(last=False)
        if self._updates:  # what is shown knows nothing of the others
            self.config, self.source, self.sink = next(iter(self._updates.values())).before
        self.source, self.sink = format_of(session, "input", self.source), format_of(session, "output", self.sink)
        self.config = settings_after(self.config, session)
        shown = {"id": str(session.get("id")), "object": "realtime.session", **self.config.to_wire()}
        self._apply_pending()
        return {**wire, "session": shown}

    def _error(self, wire: JsonObject) -> JsonObject:
        ours = error_of(wire)
        error = ours.get("error")
        if not isinstance(error, dict):
            return ours
        if error.get("code") == "session_expired":  # of the session there; the conversation goes on in another one
            return ev.SessionClosing(event_id=identifier("event"), code=EXPIRED, reason="").to_wire()
        about = error.get("event_id")
        if about is None and is_about_settings(error):
            about = next(iter(self._updates), None)
        if isinstance(about, str) and about in self._updates:
            ours = {
                **ours,
                "error": {**error, "event_id": self._take_back(about), "param": error.get("param") or "session"},
            }
        self._awaited.discard("")
        self._end_if_done()
        return ours

    def _take_back(self, update_id: str) -> str | None:
        """Forget a change that was refused, and none after it; the caller's id of it."""
        self.config, self.source, self.sink = next(iter(self._updates.values())).before
        refused = self._updates.pop(update_id)
        self._apply_pending()
        return refused.about

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
