"""Reading what a client sent: from a JSON text frame to checked fields, before any event is made of it."""

from __future__ import annotations

import base64
import binascii
import json
import math
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from voiceapp.errors import RemoteProtocolError

JsonObject = dict[str, Any]

MAX_JSON_DEPTH = 32

Value = TypeVar("Value")


class EventError(RemoteProtocolError):
    """A client event that cannot be read; `event_id` is the client's own, when it could be found."""

    def __init__(
        self, message: str, *, code: str = "invalid_event", param: str | None = None, event_id: str | None = None
    ) -> None:
        super().__init__(message, code=code, param=param)
        self.event_id = event_id


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one client event, read one by one; null counts as absent.

    Raises:
        EventError: from every method, if the field is not what it must be; it names the field and the event.
    """

    message: JsonObject
    event_id: str | None

    def has(self, name: str) -> bool:
        return self.message.get(name) is not None

    def object(self, name: str) -> JsonObject:
        return self._need(name, self.maybe_object(name))

    def maybe_object(self, name: str) -> JsonObject | None:
        return self._maybe(name, dict, "an object")

    def objects(self, name: str) -> list[JsonObject]:
        values = self._need(name, self._maybe(name, list, "a list"))
        if not all(isinstance(value, dict) for value in values):
            self._refuse(name, "invalid_type", f"'{name}' must be a list of objects.")
        return values

    def string(self, name: str) -> str:
        return self._need(name, self.maybe_string(name))

    def maybe_string(self, name: str) -> str | None:
        return self._maybe(name, str, "a string")

    def count(self, name: str) -> int:
        """A number from 0; a fraction, which JavaScript clocks give, is cut off."""
        value = self._need(name, self.message.get(name))
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(name, "invalid_type", f"'{name}' must be an integer.")
        if not 0 <= value <= 2**53:  # the largest integer that a JavaScript client can hold
            self._refuse(name, "invalid_value", f"'{name}' must not be negative, nor beyond 2^53.")
        return int(value)

    def base64(self, name: str) -> bytes:
        encoded = self.string(name)
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            self._refuse(name, "invalid_value", f"'{name}' is not valid base64.")

    def _maybe(self, name: str, kind: type[Value], wanted: str) -> Value | None:
        value = self.message.get(name)
        if value is not None and not isinstance(value, kind):
            self._refuse(name, "invalid_type", f"'{name}' must be {wanted}.")
        return value

    def _need(self, name: str, value: Value | None) -> Value:
        if value is None:
            self._refuse(name, "missing_required_parameter", f"Missing required field '{name}'.")
        return value

    def _refuse(self, name: str, code: str, message: str) -> NoReturn:
        raise EventError(message, code=code, param=name, event_id=self.event_id) from None


def parse_fields(text: str) -> Fields:
    """The JSON object in one text frame.

    Raises:
        EventError: not JSON, or not an object.
    """
    try:
        message = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise EventError("The message is not valid JSON.", code="invalid_json") from None
    if not isinstance(message, dict):
        raise EventError("An event is a JSON object.", code="invalid_json")
    event_id = message.get("event_id")
    return Fields(message, clean(event_id) if isinstance(event_id, str) else None)


def tidy(fields: Fields) -> Fields:
    """Return the fields with every string in them `clean`.

    Raises:
        EventError: nested too deep, or a number beyond the range of a double.
    """
    return Fields(_tidy(fields.message, MAX_JSON_DEPTH, fields.event_id), fields.event_id)


def _tidy(value: Any, depth: int, event_id: str | None) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise EventError("A number is out of range.", code="invalid_json", event_id=event_id)
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        raise EventError(f"The event is nested deeper than {MAX_JSON_DEPTH} levels.", event_id=event_id)
    if isinstance(value, list):
        return [_tidy(each, depth - 1, event_id) for each in value]
    return {clean(name): _tidy(each, depth - 1, event_id) for name, each in value.items()}


def clean(text: str) -> str:
    """`text` without NUL characters and lone surrogates, which databases and encoders refuse."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
