"""Room for callers that are waited for: the caller with the most waiting loses the oldest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

Thing = TypeVar("Thing", bound=Hashable)


class WaitingList(Generic[Thing]):
    """Things that wait, each for an owner, in the order in which they came."""

    def __init__(self, room: int) -> None:
        """`room` is how many may wait at once."""
        self._room = room
        self._owners: dict[Thing, Hashable] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, thing: Thing, owner: Hashable) -> Thing | None:
        """Take one up; returns the one that makes way for it, if there was no room left."""
        crowded_out = self._oldest_of_most() if len(self._owners) >= self._room else None
        if crowded_out is not None:
            del self._owners[crowded_out]
        self._owners[thing] = owner
        return crowded_out

    def remove(self, thing: Thing) -> None:
        """Take it out of the queue; harmless when it did not wait."""
        self._owners.pop(thing, None)

    def _oldest_of_most(self) -> Thing:
        (owner, _), *_ = Counter(self._owners.values()).most_common(1)
        return next(thing for thing, whose in self._owners.items() if whose == owner)
