"""The realtime dialect as a client uses it: events of a server are read, events of a client are written."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any

from voiceapp.protocol.openai_realtime.hearing import item_of, response_of, session_of
from voiceapp.protocol.wire.events import SERVER_EVENTS, AudioAppend, AudioDelta, ClientEvent, ErrorEvent, ServerEvent
from voiceapp.protocol.wire.reading import JsonObject

_KINDS: dict[str, tuple[type, Any]] = {
    "str": (str, ""),
    "bool": (bool, False),
    "int": (int, 0),
    "float": (float, 0.0),
    "JsonObject": (dict, {}),
    "list[JsonObject]": (list, []),
}
"""Type of a field by its annotation, and its value where a server leaves it out."""


def client_event_wire(event: ClientEvent) -> JsonObject:
    """A client event, ready for JSON; fields that are None are left out."""
    wire: JsonObject = {"type": event.type}
    for of in fields(event):
        value = getattr(event, of.name)
        if value is not None:
            wire[of.name] = value
    if isinstance(event, AudioAppend):
        wire["audio"] = base64.b64encode(event.audio).decode("ascii")
    return wire


MOST = 2**53
"""Largest integer that a JavaScript client can hold exactly."""
_COMPLETED: dict[str, Callable[[JsonObject], JsonObject | None]] = {
    "session": session_of,
    "response": lambda response: (known := response_of(response)) and {**response, **known},
    "item": item_of,
}
"""Services leave out what other dialects have to show."""
_OF_AUDIO = ("audio", "heard_from")
"""Fields of `AudioDelta` that are not on the wire under their names."""


def server_event_of(wire: JsonObject) -> ServerEvent | None:
    """The event that a server's message is, with every field that this server's has; None where it is not known, or a
    field is not what it must be."""
    kind = wire.get("type")
    cls = SERVER_EVENTS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        return None
    try:
        if cls is ErrorEvent:
            return _error(wire)
        given = {of.name: _value(of, wire) for of in fields(cls) if of.name not in _OF_AUDIO}
        if cls is AudioDelta:
            given["audio"] = base64.b64decode(wire["delta"], validate=True)
        for name in given.keys() & _COMPLETED.keys():
            given[name] = _COMPLETED[name](given[name])
            if given[name] is None:
                return None
        return cls(**given)
    except (TypeError, LookupError, binascii.Error, ValueError):
        return None


def _value(of: Field[Any], wire: JsonObject) -> Any:
    """A field of a message.

    Raises:
        TypeError: if it is of another type.
        ValueError: a number that nothing can be reckoned with.
    """
    annotation = str(of.type)
    kind, missing = _KINDS[annotation.removesuffix(" | None")]
    value = wire.get(of.name)
    if value is None:
        return of.default if of.default is not MISSING else None if annotation.endswith(" | None") else missing
    if isinstance(value, bool) != (kind is bool) or not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(of.name)
    if isinstance(value, int | float) and not abs(value) <= MOST:  # nor what is not a number
        raise ValueError(of.name)
    return value


def _error(wire: JsonObject) -> ErrorEvent:
    """Read an error event, whose fields are one level deeper.

    Raises:
        LookupError: if it names no error.
        TypeError: if that is no object.
    """
    error = wire["error"]
    if not isinstance(error, dict):
        raise TypeError("error")
    return ErrorEvent(
        event_id=str(wire.get("event_id") or ""),
        code=str(error.get("code") or error.get("type") or "server_error"),
        message=str(error.get("message") or ""),
        error_type=str(error.get("type") or "server_error"),
        param=None if error.get("param") is None else str(error["param"]),
        about=None if error.get("event_id") is None else str(error["event_id"]),
    )
