"""Fields of a service's events, whatever it has put into them."""

from __future__ import annotations

from voiceapp.protocol.reading import JsonObject


def object_of(value: object) -> JsonObject:
    """A JSON object; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def count_of(wire: JsonObject, name: str) -> int:
    """A number that counts something; 0 where it is none."""
    value = wire.get(name)
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0


def response_id_of(wire: JsonObject) -> str:
    """The response that an event is about; empty where it is about none."""
    response = wire.get("response")
    return str(response.get("id")) if isinstance(response, dict) else str(wire.get("response_id") or "")


def output_index_of(wire: JsonObject) -> int:
    """The number of the item in its response."""
    index = wire.get("output_index")
    return index if isinstance(index, int) else 0


def message_id_of(response: JsonObject) -> str:
    """The item of the message that a response has; empty where it has none."""
    output = response.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    return next((str(item.get("id")) for item in items if item.get("type") == "message"), "")
