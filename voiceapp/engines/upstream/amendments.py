"""What a service elsewhere is told beside what its callers say, and the answers to it, which callers do not see."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from voiceapp.engines.upstream.kept import KEPT_FIELDS
from voiceapp.engines.upstream.turns import words_of
from voiceapp.formats import identifier
from voiceapp.protocol import events as ev
from voiceapp.protocol.items import Message
from voiceapp.protocol.reading import JsonObject

REMEMBERED = 32
"""Items, and what was told, that later events may still be about."""
_ANSWERED = {ev.ItemDelete.type: ev.ItemDeleted.type, ev.ItemCreate.type: ev.ItemCreated.type}


class Replies:
    """The latest ones, which a caller may still hear."""

    def __init__(self) -> None:
        self._messages: OrderedDict[str, Message] = OrderedDict()

    def remember(self, message: Message | None) -> None:
        """Have another one, if it has words."""
        if message is not None:
            self._messages[message.id] = message
            if len(self._messages) > REMEMBERED:
                self._messages.popitem(last=False)

    def find(self, item_id: object) -> Message | None:
        """The one with this id."""
        return self._messages.get(item_id) if isinstance(item_id, str) else None


class Amendments:
    """Changes to the conversation of one session there."""

    def __init__(self, tell: Callable[[JsonObject], None]) -> None:
        self._tell = tell
        self._told: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """By id of the event: the type of its answer, and the item that it is about."""
        self._places: OrderedDict[str, str] = OrderedDict()
        """By item of the assistant's: the one before it."""

    def place(self, item_id: str, previous: object) -> None:
        """Remember where an item stands."""
        self._places[item_id] = previous if isinstance(previous, str) else "root"
        if len(self._places) > REMEMBERED:
            self._places.popitem(last=False)

    def place_of(self, item_id: str) -> str | None:
        """The item before one; None where there is none, or it is not known."""
        place = self._places.get(item_id)
        return None if place == "root" else place

    def keep(self, item_id: str, words: str) -> None:
        """Have the service know of a reply only what was heard. It has the reply as text, which cannot be truncated
        there: the item is replaced."""
        self.tell_of({"type": ev.ItemDelete.type, "item_id": item_id}, item_id)
        self._create(item_id, words)

    def add(self, item: JsonObject) -> None:
        """Have the service know of an item of a reply that another session wrote."""
        if item.get("type") == "message":
            self._create(str(item.get("id")), words_of(item))
        else:
            known = {name: item[name] for name in KEPT_FIELDS if name in item}
            self.tell_of({"type": ev.ItemCreate.type, "item": known}, str(item.get("id")))

    def _create(self, item_id: str, words: str) -> None:
        if not words:
            return
        content = [{"type": "text", "text": words}]
        item = {"id": item_id, "type": "message", "role": "assistant", "content": content}
        place = self._places.get(item_id)
        where = {} if place is None else {"previous_item_id": place}
        self.tell_of({"type": ev.ItemCreate.type, **where, "item": item}, item_id)

    def tell_of(self, wire: JsonObject, item_id: str = "") -> None:
        """Tell the service something; an error about it is nobody's business."""
        event_id = identifier("event")
        self._told[event_id] = (_ANSWERED.get(wire["type"], ""), item_id)
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        self._tell({"event_id": event_id, **wire})

    def answered(self, wire: JsonObject) -> bool:
        """Whether an event answers what was told."""
        kind, error = wire["type"], wire.get("error")
        if kind == ev.ErrorEvent.type:
            about = error.get("event_id") if isinstance(error, dict) else None
            return isinstance(about, str) and self._told.pop(about, None) is not None
        item = wire.get("item")
        item_id = item.get("id") if isinstance(item, dict) else wire.get("item_id")
        found = next((told for told, answer in self._told.items() if answer == (kind, item_id)), None)
        if found is None:
            return False
        del self._told[found]
        return True
