"""Fields of a service's events, whatever it has put into them."""

from __future__ import annotations

from voiceapp.protocol.reading import JsonObject


def object_of(value: object) -> JsonObject:
    """A JSON object; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def response_id_of(wire: JsonObject) -> str:
    """The response that an event is about; empty where it is about none."""
    response = wire.get("response")
    return str(response.get("id")) if isinstance(response, dict) else str(wire.get("response_id") or "")
