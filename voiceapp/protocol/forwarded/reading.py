"""Reading a service's events: any JSON object with a type, whatever stands in its other fields."""

from __future__ import annotations

import json
from math import isfinite

from voiceapp.protocol.wire.reading import JsonObject


def wire_of(text: str) -> JsonObject | None:
    """The event in a message; None without one, or with a number that is out of range."""
    try:
        wire = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_writable)
    except (ValueError, RecursionError):
        return None
    return wire if isinstance(wire, dict) and isinstance(wire.get("type"), str) else None


def written(wire: JsonObject) -> str:
    """The JSON text of an event."""
    return json.dumps(wire, separators=(",", ":"))


def object_of(value: object) -> JsonObject:
    """A JSON object; empty for any other value."""
    return value if isinstance(value, dict) else {}


def response_id_of(wire: JsonObject) -> str:
    response = wire.get("response")
    return str(response.get("id")) if isinstance(response, dict) else str(wire.get("response_id") or "")


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if isfinite(number) else _refuse(digits)


def _writable(digits: str) -> int:
    """An integer within the range of a `float`."""
    _finite(digits)
    return int(digits)
