"""Events of a session that another service holds, as they pass through: whole texts instead of fields.

Most of what passes is audio. Of a text that carries audio only the beginning and the end are looked at, and it goes on
as it came. Nothing but audio can be meant by it: all of its fields but the audio are read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import ClassVar

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.configuration import RESPONSE_SETTINGS, SETTINGS, TURN_SETTINGS
from voiceapp.protocol.forwarded.reading import object_of
from voiceapp.protocol.tools import read_tools
from voiceapp.protocol.wire.events import (
    CLIENT_EVENTS,
    AudioAppend,
    AudioDelta,
    ClientEvent,
    EventError,
    ServerEvent,
    SessionFinish,
    parse_client_event,
)
from voiceapp.protocol.wire.reading import JsonObject, parse_fields, tidy

_NAME = r'"[A-Za-z0-9_-]{0,128}"'
_APPEND = re.compile(
    rf'\s*{{\s*(?:"event_id"\s*:\s*{_NAME}\s*,\s*)?"type"\s*:\s*"{AudioAppend.type}"\s*,\s*"audio"\s*:\s*"'
)
_AFTER_APPEND = re.compile(rf'"\s*(?:,\s*"event_id"\s*:\s*{_NAME}\s*)?}}\s*')
_DELTA = re.compile(
    rf'\s*{{(?:\s*"(?:event_id|response_id|item_id|output_index|content_index)"\s*:\s*(?:{_NAME}|\d{{1,9}})\s*,)*'
    rf'\s*"type"\s*:\s*"{re.escape(AudioDelta.type)}"\s*,'
    rf'(?:\s*"(?:event_id|response_id|item_id|output_index|content_index)"\s*:\s*(?:{_NAME}|\d{{1,9}})\s*,)*'
    r'\s*"delta"\s*:\s*"'
)
_AFTER_DELTA = re.compile(r'"\s*}\s*')


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedMessage(ClientEvent):
    """A client's message for the service."""

    type: ClassVar[str] = "forwarded"
    text: str
    wire: JsonObject | None = None
    """The parsed text; None where it carries audio."""
    audio_bytes: int = 0
    """Length of the audio that it carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedEvent(ServerEvent):
    """An event of the service for the client."""

    type: ClassVar[str] = "forwarded"
    kind: str
    text: str

    def to_wire(self) -> JsonObject:
        found: JsonObject = json.loads(self.text)
        return found


def appended_bytes(text: str) -> int | None:
    """Return the length of the audio in a client's text; None where that takes reading it."""
    return _base64_bytes(text, _APPEND, _AFTER_APPEND)


def spoken_bytes(text: str) -> int | None:
    """Return the length of the audio in a service's text; None where that takes reading it."""
    return _base64_bytes(text, _DELTA, _AFTER_DELTA)


def _base64_bytes(text: str, before: re.Pattern[str], after: re.Pattern[str]) -> int | None:
    begun = before.match(text)
    if begun is None:
        return None
    end = text.find('"', begun.end())
    if end < 0 or after.fullmatch(text, end) is None:
        return None
    padding = 2 if text.endswith("==", begun.end(), end) else 1 if text.endswith("=", begun.end(), end) else 0
    return (end - begun.end()) * 3 // 4 - padding


class ForwardingDialect:
    """Our own dialect where a service that speaks it serves the session: it reads no more than it has to."""

    def read(self, text: str) -> ClientEvent | None:
        """See `Dialect`.

        Raises:
            EventError: if it is not JSON, or no event that is known here.
        """
        size = appended_bytes(text)
        if size is not None:
            return ForwardedMessage(text=text, audio_bytes=size)
        fields = parse_fields(text)
        kind = fields.message.get("type")
        if kind in (AudioAppend.type, SessionFinish.type):
            return parse_client_event(text)
        if not isinstance(kind, str) or kind not in CLIENT_EVENTS:
            message = "The event has no type, or one that is not known here."
            raise EventError(message, code="unknown_event_type", param="type", event_id=fields.event_id)
        wire = tidy(fields).message
        return ForwardedMessage(text=json.dumps(wire, separators=(",", ":")), wire=wire, event_id=fields.event_id)

    def write(self, event: ServerEvent) -> list[JsonObject]:
        return [event.to_wire()]


def for_service(wire: JsonObject) -> JsonObject:
    """A client's event without the settings that are not known here.

    The service is called with a key of the operator's: by an MCP server, a stored prompt or the address of an image or
    recording, a caller could have it call addresses, or read what belongs to the operator.

    Raises:
        EventError: if it gives tools other than functions, or an image by its address.
    """
    for name, settings in (("session", SETTINGS), ("response", RESPONSE_SETTINGS)):
        if isinstance(given := wire.get(name), dict):
            try:
                read_tools(given.get("tools"), f"{name}.tools", {})
            except InvalidParameter as refused:
                about = wire.get("event_id")
                raise EventError(refused.message, code="invalid_value", param=refused.param, event_id=about) from None
            known = {field: value for field, value in given.items() if field in settings}
            if isinstance(audio := known.get("audio"), dict) and isinstance(source := audio.get("input"), dict):
                known["audio"] = {**audio, "input": _with_known_turns(source)}
            wire = {**wire, name: _with_known_turns(known)}
    _check_images(wire, wire.get("item"), "item")
    items = object_of(wire.get("response")).get("input")
    for number, item in enumerate(items if isinstance(items, list) else ()):
        _check_images(wire, item, f"response.input[{number}]")
    return wire


def _with_known_turns(settings: JsonObject) -> JsonObject:
    turns = settings.get("turn_detection")
    if not isinstance(turns, dict):
        return settings
    return {**settings, "turn_detection": {name: value for name, value in turns.items() if name in TURN_SETTINGS}}


def _check_images(wire: JsonObject, item: object, at: str) -> None:
    content = object_of(item).get("content")
    for number, part in enumerate(content if isinstance(content, list) else ()):
        url = object_of(part).get("image_url")
        url = url.get("url") if isinstance(url, dict) else url
        if url is not None and not str(url).startswith("data:"):
            param = f"{at}.content[{number}].image_url"
            message = f"{param} must be a data: URL, which holds the image itself."
            raise EventError(message, code="invalid_value", param=param, event_id=wire.get("event_id"))


FORWARDING = ForwardingDialect()
"""Dialect of all sessions: it has no state."""
