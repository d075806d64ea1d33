"""Names for what a caller asks for without one, so that an answer or a refusal is known to be about it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from voiceapp.formats import identifier
from voiceapp.protocol import events as ev
from voiceapp.protocol.forwarded.fields import object_of

REMEMBERED = 64
"""Events that a refusal may still be about."""


class Names:
    """Those that the events of one session were given here, which its caller does not see."""

    def __init__(self) -> None:
        self._given: OrderedDict[str, None] = OrderedDict()

    def name(self, wire: dict[str, Any]) -> dict[str, Any]:
        """A caller's event with an id. An item with audio has one too: those that a service makes of speech by itself
        look the same."""
        if not isinstance(wire.get("event_id"), str) or not wire["event_id"]:
            event_id = identifier("event")
            self._given[event_id] = None
            if len(self._given) > REMEMBERED:
                self._given.popitem(last=False)
            wire = {**wire, "event_id": event_id}
        item = wire.get("item")
        if wire["type"] == ev.ItemCreate.type and isinstance(item, dict) and "id" not in item and _has_audio(item):
            wire = {**wire, "item": {**item, "id": identifier("item")}}
        return wire

    def is_refused(self, wire: dict[str, Any]) -> bool:
        """Whether an event is a refusal that has a name of ours in it."""
        about = object_of(wire.get("error")).get("event_id") if wire["type"] == ev.ErrorEvent.type else None
        return isinstance(about, str) and about in self._given

    @staticmethod
    def without_name(refusal: dict[str, Any]) -> dict[str, Any]:
        """The refusal as the caller of an event without an id reads it."""
        return {**refusal, "error": {**refusal["error"], "event_id": None}}


def _has_audio(item: dict[str, Any]) -> bool:
    parts = item.get("content")
    return isinstance(parts, list) and any(object_of(part).get("type") == "input_audio" for part in parts)
