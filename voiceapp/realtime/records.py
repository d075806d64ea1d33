"""The books of one conversation: a row when it begins, a row per exchange, the sums at its end.

Rows are written beside the conversation, never in its way: what is to be written waits in a bounded queue. What
webhook receivers are told of is written in the same transactions.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import transaction
from django.utils import timezone

from voiceapp.accounts import ledger
from voiceapp.accounts.auth import Caller
from voiceapp.protocol.events import ServerEvent
from voiceapp.protocol.work import TurnEnded
from voiceapp.realtime import telling
from voiceapp.realtime.models import RealtimeSession, Turn
from voiceapp.realtime.processes import own_name
from voiceapp.webhooks.events import Kind

logger = logging.getLogger(__name__)

QUEUE = 128
"""Exchanges waiting for a slow database, and as many times what else is told of; older ones of the same sort are then
left out of the books, never the conversation."""
UPDATES_APART_S = 1.0
"""Shortest time between two tellings of changed settings, while nothing else happens; the last settings tell all."""
REASON_LENGTH = 123
FINISH_S = 5.0
"""Longest wait for the database at the end, while the conversation's place is still taken."""
ABANDONED = 1006
"""RFC 6455, 7.1.5: the connection was lost and nobody closed it."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is known of a conversation when it begins."""

    session_id: str
    caller: Caller
    model: str
    transport: str
    client_address: str


@dataclass(frozen=True, slots=True)
class _Lengths:
    """What of a turn the session's sums are made of."""

    input_audio_ms: int
    output_audio_ms: int
    input_tokens: int
    output_tokens: int


@dataclass(slots=True)
class _Note:
    """What is to be told, in this order, and has no row of its own."""

    kinds: tuple[Kind, ...]
    is_told: bool = field(default=False, compare=False)


UPDATED = _Note(telling.UPDATED)


class Recorder:
    """Writes the rows of one conversation."""

    def __init__(self, beginning: Beginning) -> None:
        self._beginning = beginning
        self._waiting: deque[TurnEnded | _Note] = deque()
        """In the order in which they are written; at most `QUEUE` of each sort."""
        self._came = asyncio.Event()
        self._updated_at = -math.inf
        """When changed settings were last told of, by the event loop's clock."""
        self._in_hand: TurnEnded | _Note | None = None
        """Being written; still to be written when the writing is cancelled."""
        self._lengths: dict[int, _Lengths] = {}
        """By ordinal: a turn may be told again, and the last telling counts."""
        self._is_begun = False
        self._billed: set[int] = set()
        """Ordinals that stand in the ledger."""
        self._told: set[int] = set()
        """Ordinals whose end receivers are told of."""

    def add(self, turn: TurnEnded) -> None:
        """Take one record; returns at once."""
        self._lengths[turn.ordinal] = _Lengths(
            turn.input_audio_ms, turn.output_audio_ms, turn.input_tokens, turn.output_tokens
        )
        self._put(turn)

    def note(self, event: ServerEvent) -> None:
        """Take one event on its way to the caller, in case receivers are told of such; returns at once."""
        if kinds := telling.TOLD.get(type(event)):
            note = _Note(kinds)
            if note != UPDATED or not self._waiting or self._waiting[-1] != note:
                self._put(note)

    async def run(self) -> None:
        """Write until cancelled."""
        await self._begin()
        while True:
            await self._wait()
            self._in_hand = self._take()
            await self._write(self._in_hand)
            self._in_hand = None

    async def finish(self, close_code: int, close_reason: str) -> None:
        """Write what still waits, and the end; gives up on a database that takes too long."""
        try:
            async with asyncio.timeout(FINISH_S):
                if not self._is_begun:
                    await self._begin()
                if self._in_hand is not None:
                    await self._write(self._in_hand)
                while self._waiting:
                    await self._write(self._take())
                await self._end(close_code, close_reason)
        except TimeoutError:
            logger.error("session %s: its end was not recorded within %g s", self._beginning.session_id, FINISH_S)

    def _put(self, entry: TurnEnded | _Note) -> None:
        alike = [one for one in self._waiting if isinstance(one, type(entry))]
        if len(alike) == QUEUE:
            dropped = alike[0]
            self._waiting.remove(dropped)
            what = f"turn {dropped.ordinal}" if isinstance(dropped, TurnEnded) else " and ".join(dropped.kinds)
            logger.warning("session %s: %s was not recorded", self._beginning.session_id, what)
        self._waiting.append(entry)
        self._came.set()

    async def _wait(self) -> None:
        """Until something is to be written; changed settings wait for their time, or for something else."""
        while not self._waiting:
            self._came.clear()
            await self._came.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._updated_at + UPDATES_APART_S):
                while list(self._waiting) == [UPDATED]:
                    self._came.clear()
                    await self._came.wait()

    def _take(self) -> TurnEnded | _Note:
        """What is to be written next: a turn, or everything that is told before it."""
        first = self._waiting.popleft()
        if isinstance(first, TurnEnded):
            return first
        kinds = first.kinds
        while self._waiting and isinstance(following := self._waiting[0], _Note):
            kinds += following.kinds
            self._waiting.popleft()
        return _Note(kinds)

    async def _begin(self) -> None:
        await _safely(self._beginning, sync_to_async(_write_beginning)(self._beginning, served_by=own_name()))
        self._is_begun = True

    async def _write(self, entry: TurnEnded | _Note) -> None:
        if isinstance(entry, _Note):
            await _safely(self._beginning, sync_to_async(self._write_note)(entry))
            if Kind.SESSION_UPDATED in entry.kinds:
                self._updated_at = asyncio.get_running_loop().time()
            return
        await _safely(self._beginning, sync_to_async(self._write_turn)(entry))
        await self._bill(entry)

    async def _end(self, close_code: int, close_reason: str) -> None:
        await _safely(self._beginning, sync_to_async(self._write_end)(close_code, close_reason))

    # What follows runs on a thread, and is run again when its awaiter is cancelled meanwhile.

    def _write_note(self, note: _Note) -> None:
        if not note.is_told:
            with transaction.atomic():
                self._tell(note.kinds)
            note.is_told = True

    def _write_turn(self, turn: TurnEnded) -> None:
        keep = settings.TRANSCRIPT_DAYS > 0
        with transaction.atomic():
            Turn.objects.update_or_create(
                session_id=self._beginning.session_id,
                ordinal=turn.ordinal,
                defaults={
                    "user_text": turn.user_text if keep else "",
                    "assistant_text": turn.assistant_text if keep else "",
                    "heard_text": turn.heard_text if keep and turn.is_interrupted else "",
                    "status": turn.status,
                    "interrupted": turn.is_interrupted,
                    "input_audio_ms": turn.input_audio_ms,
                    "output_audio_ms": turn.output_audio_ms,
                    "input_tokens": turn.input_tokens,
                    "output_tokens": turn.output_tokens,
                    "end_of_turn_ms": turn.end_of_turn_ms,
                    "recognition_ms": turn.recognition_ms,
                    "first_token_ms": turn.first_token_ms,
                    "first_audio_ms": turn.first_audio_ms,
                },
            )
            if turn.ordinal not in self._told:
                self._tell(telling.ANSWERED)
        self._told.add(turn.ordinal)

    def _write_end(self, close_code: int, close_reason: str) -> None:
        lengths = self._lengths.values()
        with transaction.atomic():
            RealtimeSession.objects.filter(pk=self._beginning.session_id).update(
                ended_at=timezone.now(),
                close_code=close_code,
                close_reason=close_reason[:REASON_LENGTH],
                turn_count=len(lengths),
                input_audio_ms=sum(turn.input_audio_ms for turn in lengths),
                output_audio_ms=sum(turn.output_audio_ms for turn in lengths),
                input_tokens=sum(turn.input_tokens for turn in lengths),
                output_tokens=sum(turn.output_tokens for turn in lengths),
            )
            self._tell(telling.ENDED)

    def _tell(self, kinds: tuple[Kind, ...]) -> None:
        telling.tell(self._beginning.caller.workspace_id, [self._beginning.session_id], kinds)

    async def _bill(self, turn: TurnEnded) -> None:
        """The ledger's lines of one exchange; telling it again changes its words, not what it used."""
        if turn.ordinal in self._billed:
            return
        self._billed.add(turn.ordinal)
        begun = self._beginning
        await _safely(
            self._beginning,
            ledger.write(
                begun.caller,
                operation="realtime",
                model=begun.model,
                family="realtime",
                request_id=f"{begun.session_id}:{turn.ordinal}",
                quantities={
                    "input_tokens": turn.input_tokens,
                    "output_tokens": turn.output_tokens,
                    "audio_seconds": math.ceil((turn.input_audio_ms + turn.output_audio_ms) / 1000),
                },
            ),
        )


async def record_relayed(beginning: Beginning) -> None:
    """The only row of a conversation that a service elsewhere holds. Its end is not told to us: see `leftovers`."""
    try:
        async with asyncio.timeout(FINISH_S):
            await _safely(beginning, sync_to_async(_write_beginning)(beginning, served_by=""))
    except TimeoutError:
        logger.error("session %s was not recorded within %g s", beginning.session_id, FINISH_S)


def _write_beginning(begun: Beginning, *, served_by: str) -> None:
    with transaction.atomic():
        _, is_new = RealtimeSession.objects.get_or_create(
            id=begun.session_id,
            defaults={
                "account_id": begun.caller.account_id,
                "workspace_id": begun.caller.workspace_id,
                "api_key_id": begun.caller.key_id,
                "user_id": begun.caller.user_id,
                "is_guest": begun.caller.is_guest,
                "model": begun.model,
                "transport": begun.transport,
                "client_address": begun.client_address,
                "served_by": served_by,
            },
        )
        if is_new:
            telling.tell(begun.caller.workspace_id, [begun.session_id], telling.BEGUN)


async def _safely(beginning: Beginning, write: Coroutine[Any, Any, object]) -> None:
    """A database that fails costs the row, not the conversation."""
    try:
        await write
    except DatabaseFailure:
        logger.exception("session %s: a row could not be written", beginning.session_id)
