"""Words and lengths of the assistant's latest items, for the part of an interrupted item that was heard."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from voiceapp.protocol.audio import AudioFormat

MAX_CHARACTERS = 200_000
"""Characters of one item."""
MAX_ITEMS = 32
MOST_MS = 2**53
"""Limit of a time that the service tells."""


@dataclass(slots=True)
class _Item:
    words: str = ""
    sound_bytes: int = 0


class SpokenItems:
    def __init__(self) -> None:
        self._items: OrderedDict[str, _Item] = OrderedDict()

    def said(self, item_id: object, words: object) -> None:
        if isinstance(item_id, str) and isinstance(words, str):
            item = self._item(item_id)
            item.words = (item.words + words)[:MAX_CHARACTERS]

    def sounded(self, item_id: object, n_bytes: int) -> None:
        if isinstance(item_id, str):
            self._item(item_id).sound_bytes += n_bytes

    def cut(self, item_id: object, heard_ms: object, sound: AudioFormat) -> tuple[str, str]:
        """The words that were heard and those that were not, estimated from how long they take."""
        item = self._items.get(str(item_id), _Item())
        whole_ms = sound.wire_ms(item.sound_bytes)
        share = max(0, min(heard_ms, MOST_MS)) / whole_ms if isinstance(heard_ms, int) and whole_ms else 1.0
        heard = item.words
        if share < 1:
            heard = heard[: int(len(heard) * share)].rpartition(" ")[0]
        return heard, item.words[len(heard) :]

    def _item(self, item_id: str) -> _Item:
        if item_id not in self._items:
            self._items[item_id] = _Item()
            while len(self._items) > MAX_ITEMS:
                self._items.popitem(last=False)
        return self._items[item_id]
