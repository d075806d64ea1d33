"""Records of one conversation that wait to be written: turns, and webhook events that have no row of their own."""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from voiceapp.protocol.work import TurnEnded
from voiceapp.realtime.records import webhook_events
from voiceapp.webhooks.events import EventKind

logger = logging.getLogger(__name__)

QUEUE = 128
"""Turns that wait for a slow database, and as many notes; older ones of the same sort are then left out of the record,
never the conversation."""
UPDATES_APART_S = 1.0
"""Shortest time between two notes of changed settings, while nothing else happens; the last settings tell all."""


@dataclass(slots=True)
class EventNote:
    """Webhook events that are to be published, in this order, and have no row of their own."""

    kinds: tuple[EventKind, ...]
    is_told: bool = field(default=False, compare=False)
    """The events were published; what is written again does not publish them again."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    turn: TurnEnded
    at: datetime


UPDATED = EventNote(webhook_events.UPDATED)


class RecordQueue:
    """Entries in the order in which they are written; at most `QUEUE` of each sort."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._waiting: list[TurnRecord | EventNote] = []
        self._came = asyncio.Event()
        self._updated_at = -math.inf
        """Time of the last note of changed settings, by the event loop's clock."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, entry: TurnRecord | EventNote) -> None:
        """Take one entry; returns at once. Changed settings that change again are told of once."""
        if entry == UPDATED and self._waiting and self._waiting[-1] == entry:
            return
        alike = [one for one in self._waiting if isinstance(one, type(entry))]
        if len(alike) == QUEUE:
            dropped = alike[0]
            self._waiting.remove(dropped)
            what = f"turn {dropped.turn.ordinal}" if isinstance(dropped, TurnRecord) else " and ".join(dropped.kinds)
            logger.warning("session %s: %s was not recorded", self._session_id, what)
        self._waiting.append(entry)
        self._came.set()

    async def wait(self) -> None:
        """Wait until something is to be written; changed settings wait for their time, or for something else."""
        while not self._waiting:
            self._came.clear()
            await self._came.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._updated_at + UPDATES_APART_S):
                while self._waiting == [UPDATED]:
                    self._came.clear()
                    await self._came.wait()

    def take(self) -> TurnRecord | EventNote:
        """Return the next record: a turn, or everything that is told before it."""
        first = self._waiting.pop(0)
        if isinstance(first, TurnRecord):
            return first
        kinds = first.kinds
        while self._waiting and isinstance(following := self._waiting[0], EventNote):
            kinds += following.kinds
            self._waiting.pop(0)
        return EventNote(kinds)

    def updated(self) -> None:
        self._updated_at = asyncio.get_running_loop().time()
