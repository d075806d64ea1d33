"""The books of one conversation: a row when it begins, a row per exchange, the sums at its end.

Rows are written beside the conversation, never in its way: what is to be written waits in a bounded queue.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from voiceapp.accounts.auth import Caller
from voiceapp.protocol.work import TurnEnded
from voiceapp.realtime.models import RealtimeSession, Turn

logger = logging.getLogger(__name__)

QUEUE = 64
"""Exchanges waiting for a slow database; older ones are then left out of the books, never the conversation."""
REASON_LENGTH = 123


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is known of a conversation when it begins."""

    session_id: str
    caller: Caller
    model: str
    transport: str
    client_address: str


class Recorder:
    """Writes the rows of one conversation."""

    def __init__(self, beginning: Beginning) -> None:
        self._beginning = beginning
        self._queue: asyncio.Queue[TurnEnded] = asyncio.Queue(QUEUE)
        self._turns: dict[int, TurnEnded] = {}
        """Latest record per ordinal, its texts left out: the sums are made from these."""
        self._is_begun = False

    def add(self, turn: TurnEnded) -> None:
        """Take one record; returns at once."""
        if self._queue.full():
            dropped = self._queue.get_nowait()
            logger.warning("session %s: turn %d was not recorded", self._beginning.session_id, dropped.ordinal)
        self._queue.put_nowait(turn)

    async def run(self) -> None:
        """Write until cancelled."""
        await self._begin()
        while True:
            await self._write(await self._queue.get())

    async def finish(self, close_code: int, close_reason: str) -> None:
        """Write what still waits, and the end."""
        if not self._is_begun:
            await self._begin()
        while not self._queue.empty():
            await self._write(self._queue.get_nowait())
        turns = self._turns.values()
        await self._safely(
            RealtimeSession.objects.filter(pk=self._beginning.session_id).aupdate(
                ended_at=timezone.now(),
                close_code=close_code,
                close_reason=close_reason[:REASON_LENGTH],
                turn_count=len(turns),
                input_audio_ms=sum(turn.input_audio_ms for turn in turns),
                output_audio_ms=sum(turn.output_audio_ms for turn in turns),
                input_tokens=sum(turn.input_tokens for turn in turns),
                output_tokens=sum(turn.output_tokens for turn in turns),
            )
        )

    async def _begin(self) -> None:
        begun = self._beginning
        self._is_begun = True
        await self._safely(
            RealtimeSession.objects.acreate(
                id=begun.session_id,
                account_id=begun.caller.account_id,
                workspace_id=begun.caller.workspace_id,
                api_key_id=begun.caller.key_id,
                user_id=begun.caller.user_id,
                is_guest=begun.caller.is_guest,
                model=begun.model,
                transport=begun.transport,
                client_address=begun.client_address,
            )
        )

    async def _write(self, turn: TurnEnded) -> None:
        self._turns[turn.ordinal] = turn
        keep = settings.TRANSCRIPT_DAYS > 0
        await self._safely(
            Turn.objects.aupdate_or_create(
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
        )

    async def _safely(self, write: object) -> None:
        """A database that fails costs the row, not the conversation."""
        try:
            await write  # type: ignore[misc]
        except DatabaseError:
            logger.exception("session %s: a row could not be written", self._beginning.session_id)
