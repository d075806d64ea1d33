"""The dialect of realtime services of OpenAI's family, with audio in the format of each side."""

from __future__ import annotations

import base64
import logging
from typing import Any

from voiceapp.engines.upstream.realtime.wire_audio import WireConverter
from voiceapp.errors import InvalidParameter
from voiceapp.formats import identifier, one_line
from voiceapp.protocol.forwarded.replay import MAX_EVENT_ID
from voiceapp.protocol.openai_realtime.client import OpenAIService
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import JsonObject

logger = logging.getLogger(__name__)

STATUSES = {
    "invalid_api_key": 401,
    "model_not_found": 404,
    "invalid_model": 404,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "authentication_error": 401,
    "permission_error": 403,
    "server_error": 503,
    "internal_error": 503,
    "overloaded_error": 503,
    "service_unavailable_error": 503,
}
"""Statuses by code, or else type, of an error in the place of a session, as of a handshake that is refused for the same
reason."""


class OpenAICodec:
    """The dialect of one session. See `Codec`."""

    def __init__(self, service: OpenAIService, name: str) -> None:
        """`name` is that of the session here, for logs."""
        self._name = name
        self._service = service
        self.told = service.own
        self._awaits_settings = False
        """The session has begun, and the service has neither taken nor refused its first settings."""
        self._to_service = WireConverter(service.source, service.source, is_stream=True)
        self._to_caller = WireConverter(service.sink, service.sink, is_stream=True)

    def say(self, wire: JsonObject) -> list[JsonObject]:
        """See `Codec`. An event whose audio cannot be read is refused."""
        if isinstance(event_id := wire.get("event_id"), str):
            wire = {**wire, "event_id": event_id[:MAX_EVENT_ID]}
        try:
            return self._with_sound(wire)
        except InvalidParameter as refused:
            self.told.append(_error_about(wire, refused))
            return []

    def hear(self, wire: JsonObject) -> list[JsonObject]:
        """See `Codec`."""
        kind = wire["type"].removeprefix("transcription_")
        if kind == ev.ErrorEvent.type and self._awaits_settings:
            logger.warning("session %s: the service did not take the settings: %s", self._name, reason_of(wire))
        if kind in (ev.SessionCreated.type, ev.SessionUpdated.type, ev.ErrorEvent.type):
            self._awaits_settings = kind == ev.SessionCreated.type
        return [heard for ours in self._service.hear(wire) for heard in self._with_reply(ours)]

    def give_up(self) -> None:
        """See `Codec`."""
        self._service.give_up()

    # ── Audio ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _with_sound(self, wire: JsonObject) -> list[JsonObject]:
        """The events to send for an event of ours.

        Raises:
            InvalidParameter: if its audio cannot be read.
        """
        kind = wire["type"]
        service = self._service
        if (service.config.input_format, service.source) != self._to_service.formats:
            self._to_service = WireConverter(service.config.input_format, service.source, is_stream=True)
        if kind == ev.AudioAppend.type:
            return service.say({**wire, "audio": _converted(self._to_service, wire["audio"])})
        found = service.say(self._with_recordings(wire))
        is_committed = any(theirs["type"] == ev.AudioCommit.type for theirs in found)
        if is_committed and (rest := self._to_service.flush()):
            found.insert(0, {"type": ev.AudioAppend.type, "audio": base64.b64encode(rest).decode("ascii")})
        return found

    def _with_recordings(self, wire: JsonObject) -> JsonObject:
        """An event of ours, the audio of its items in the service's format."""
        if wire["type"] == ev.ItemCreate.type:
            return {**wire, "item": self._with_recording(wire.get("item"), "item")}
        response = wire.get("response")
        items = response.get("input") if isinstance(response, dict) else None
        if wire["type"] != ev.ResponseCreate.type or not isinstance(response, dict) or not isinstance(items, list):
            return wire
        found = [self._with_recording(item, f"response.input[{index}]") for index, item in enumerate(items)]
        return {**wire, "response": {**response, "input": found}}

    def _with_recording(self, item: Any, at: str) -> Any:
        parts = item.get("content") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(parts, list):
            return item
        content = [self._in_their_format(part, f"{at}.content[{index}].audio") for index, part in enumerate(parts)]
        return {**item, "content": content}

    def _in_their_format(self, part: Any, param: str) -> Any:
        if not isinstance(part, dict) or part.get("type") != "input_audio" or not isinstance(part.get("audio"), str):
            return part
        whole = WireConverter(self._service.config.input_format, self._service.source)
        try:
            return {**part, "audio": _converted(whole, part["audio"], is_whole=True)}
        except InvalidParameter as refused:
            raise InvalidParameter(refused.message, param=param) from None

    def _with_reply(self, ours: JsonObject) -> list[JsonObject]:
        """An event for the caller, with its audio in the caller's format."""
        service = self._service
        if (service.sink, service.config.output_format) != self._to_caller.formats:
            self._to_caller = WireConverter(service.sink, service.config.output_format, is_stream=True)
        if ours["type"] == ev.AudioDelta.type and isinstance(ours.get("delta"), str):
            service.sounded(ours.get("item_id"), len(ours["delta"]) * 3 // 4)
            try:
                delta = _converted(self._to_caller, ours["delta"])
            except InvalidParameter:
                return []
            return [{**ours, "delta": delta}] if delta else []
        if ours["type"] == ev.AudioDone.type and (rest := self._to_caller.flush()):
            delta = base64.b64encode(rest).decode("ascii")
            return [{**ours, "type": ev.AudioDelta.type, "event_id": identifier("event"), "delta": delta}, ours]
        return [ours]


def _converted(converter: WireConverter, audio: str, *, is_whole: bool = False) -> str:
    """Base64 of audio in the other format.

    Raises:
        InvalidParameter: if it cannot be read.
    """
    if converter.passes(len(audio) * 3 // 4 - audio[-2:].count("=")):
        return audio
    try:
        data = base64.b64decode(audio, validate=True)
    except ValueError:  # not base64, or not even ASCII
        raise InvalidParameter("audio must be base64.", param="audio") from None
    found = converter.convert(data)
    return base64.b64encode(found + converter.flush() if is_whole else found).decode("ascii")


def status_of(refused: JsonObject) -> int:
    """The status of a handshake that is refused for the reason in an error event."""
    error = refused.get("error")
    names = (error.get("code"), error.get("type")) if isinstance(error, dict) else ()
    return next((STATUSES[name] for name in names if isinstance(name, str) and name in STATUSES), 400)


def reason_of(refused: JsonObject) -> str:
    """Code and message of an error event, for the log."""
    error = refused.get("error")
    if not isinstance(error, dict):
        return "no reason given"
    return one_line(f"{error.get('code') or error.get('type')}: {error.get('message')}", 200)


def _error_about(wire: JsonObject, refused: InvalidParameter) -> JsonObject:
    return ev.ErrorEvent(
        event_id=identifier("event"),
        code="invalid_value",
        message=refused.message,
        param=refused.param,
        about=wire.get("event_id"),
    ).to_wire()
