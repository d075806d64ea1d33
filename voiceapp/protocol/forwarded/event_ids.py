"""Ids for events of the caller that have none, so that an answer or a refusal can be told to be about them."""

from __future__ import annotations

from collections import OrderedDict

from voiceapp.formats import identifier
from voiceapp.protocol.forwarded.reading import object_of
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.reading import JsonObject

REMEMBERED = 64
"""Events that a refusal may still be about."""


class EventIds:
    """Ids that were given to the events of one session; its caller does not see them."""

    def __init__(self) -> None:
        self._given: OrderedDict[str, None] = OrderedDict()

    def name(self, wire: JsonObject) -> JsonObject:
        """Return a caller's event with an id. An item with audio gets one too: items that a service makes of speech
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

    def is_refused(self, wire: JsonObject) -> bool:
        about = object_of(wire.get("error")).get("event_id") if wire["type"] == ev.ErrorEvent.type else None
        return isinstance(about, str) and about in self._given

    @staticmethod
    def without_id(refusal: JsonObject) -> JsonObject:
        return {**refusal, "error": {**refusal["error"], "event_id": None}}


def _has_audio(item: JsonObject) -> bool:
    parts = item.get("content")
    return isinstance(parts, list) and any(object_of(part).get("type") == "input_audio" for part in parts)
