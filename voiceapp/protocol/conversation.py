"""The items of a conversation in order, and what a model sees of them."""

from __future__ import annotations

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.items import FunctionCall, FunctionOutput, Item, ItemStatus, McpItem, Message, Role

MAX_ITEMS = 1000
"""Older items are forgotten; hosted models keep about 100 turns."""
MAX_CHARACTERS = 4_000_000
"""Length of all items together; the oldest are forgotten beyond it."""


class Conversation:
    def __init__(self) -> None:
        self.items: list[Item] = []

    def find(self, item_id: str) -> Item:
        """The item with this id.

        Raises:
            InvalidParameter: if the conversation does not have it.
        """
        for item in self.items:
            if item.id == item_id:
                return item
        raise InvalidParameter(f"There is no item '{item_id[:80]}' in this conversation.", param="item_id")

    def add(self, item: Item, previous_item_id: str | None = None) -> str | None:
        """Insert after `previous_item_id` (`root`: first; None: last) and return the id of the item before it.

        Raises:
            InvalidParameter: no such previous item, or an item of this id exists already.
        """
        if any(other.id == item.id for other in self.items):
            raise InvalidParameter(f"An item '{item.id[:80]}' exists already.", param="item.id")
        if previous_item_id is None:
            position = len(self.items)
        elif previous_item_id == "root":
            position = 0
        else:
            position = self.items.index(self.find(previous_item_id)) + 1
        self.items.insert(position, item)
        before = self.items[position - 1].id if position else None
        self._forget_oldest()
        return before

    def before(self, item_id: str) -> tuple[bool, str | None]:
        """Return whether an item is there, and the id of the one before it."""
        place = next((place for place, item in enumerate(self.items) if item.id == item_id), 0)
        is_there = bool(self.items) and self.items[place].id == item_id
        return is_there, self.items[place - 1].id if place else None

    def remove(self, item: Item) -> None:
        self.items.remove(item)

    def history(self, max_turns: int | None, *, expected: Item | None = None) -> tuple[Item, ...]:
        """The items a model should see: all, or those of the last `max_turns` user turns and every system item.

        `expected` is one that will come last.

        Function calls stand with their outputs behind them, where these came if the conversation went on before; calls
        without an output and outputs without a call are left out, because chat models refuse them.
        """
        items = [*self.items, *([expected] if expected else ())]
        users = [i for i, item in enumerate(items) if isinstance(item, Message) and item.role is Role.USER]
        start = users[-max_turns] if max_turns is not None and len(users) > max_turns else 0
        recent = [item for i, item in enumerate(items) if i >= start or _is_of_the_system(item)]
        outputs = {item.call_id: item for item in recent if isinstance(item, FunctionOutput)}
        seen: list[Item] = []
        owed: list[Item] = []
        late: dict[str, FunctionCall] = {}
        for place, item in enumerate(recent):
            if isinstance(item, FunctionCall):
                if item.status is ItemStatus.COMPLETED and (output := outputs.pop(item.call_id, None)):
                    if any(isinstance(since, Message) for since in recent[place : recent.index(output)]):
                        late[item.call_id] = item
                    else:
                        seen.append(item)
                        owed.append(output)
                continue
            seen.extend(owed)
            owed.clear()
            if isinstance(item, Message | McpItem):
                seen.append(item)
            elif call := late.pop(item.call_id, None):
                seen.extend((call, item))
        return (*seen, *owed)

    def _forget_oldest(self) -> None:
        size = sum(item.size for item in self.items)
        while len(self.items) > 1 and (len(self.items) > MAX_ITEMS or size > MAX_CHARACTERS):
            size -= self.items.pop(0).size


def _is_of_the_system(item: Item) -> bool:
    return isinstance(item, Message) and item.role is Role.SYSTEM
