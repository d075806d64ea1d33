"""The record of one conversation: a row when it begins, a row per exchange, the sums at its end.

Rows are written beside the conversation, never in its way: what is to be written waits in a bounded queue, and while
the database is away it is tried again, if need be after the conversation. What webhook receivers are told of is written
in the same transactions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ParamSpec

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from voiceapp import metrics, tracing
from voiceapp.accounts.auth import Caller
from voiceapp.agents.answering import Answering
from voiceapp.database.thread import DatabaseUnavailable, run_in_db_thread, run_in_records_thread
from voiceapp.event_loops import per_loop
from voiceapp.formats import Facts
from voiceapp.protocol.wire.events import ServerEvent
from voiceapp.protocol.work import TurnEnded
from voiceapp.realtime.lifetime.processes import NAME_LENGTH, own_name
from voiceapp.realtime.models import RealtimeSession, TransportKind, Turn, session_identifier
from voiceapp.realtime.records import webhook_events
from voiceapp.realtime.records.queue import EventNote, RecordQueue, TurnRecord
from voiceapp.realtime.records.recording import Tape
from voiceapp.realtime.records.turn_charges import TurnCharges

logger = logging.getLogger(__name__)

REASON_LENGTH = 123
FINISH_S = 5.0
"""Time that the end of a conversation waits for its rows; later ones are written beside what follows."""
RETRY_S = 1.0
"""Pause after the database did not answer."""
MOST_TOGETHER = 100
"""So many beginnings and ends are written in one transaction."""
KEEP_TRYING_S = 3600.0
"""Time for which rows of an ended conversation may still be written."""
MOST_UNFINISHED = 1000
"""So many conversations may wait to be written after their end; of more, the one that ended first is given up."""
AWAY = (OperationalError, InterfaceError, DatabaseUnavailable)

P = ParamSpec("P")

_unfinished: dict[asyncio.Task[None], None] = {}
"""Writers of conversations that are over, oldest first."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Facts about a conversation when it begins."""

    caller: Caller
    model: str
    transport: str
    """A `TransportKind`."""
    client_address: str
    entrance: str
    """An `Entrance`."""
    agent: Answering | None = None
    session_id: str = field(default_factory=session_identifier, kw_only=True)
    request_id: str = field(default_factory=tracing.request_id.get, kw_only=True)
    """The request that asked for it."""

    @property
    def is_passed_on(self) -> bool:
        """Another service is told of it, and it is not seen here."""
        return self.transport == str(TransportKind.RELAYED)

    @property
    def facts(self) -> dict[str, object]:
        """Facts for lines of the log."""
        return {
            "account": self.caller.account_id,
            "caller": self.caller.label,
            "address": self.client_address,
            "model": self.model,
            "transport": self.transport,
            "request_id": self.request_id,
        }


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Parts of a turn that the session's sums are made of."""

    input_audio_ms: int
    output_audio_ms: int
    input_tokens: int
    output_tokens: int


class Together:
    """Writes the beginnings and ends of sessions of one event loop: those that come meanwhile in one transaction."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], object], asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, row: Callable[[], object]) -> None:
        """Call a function that writes one of them, in a transaction; it may be called when this was cancelled.

        Raises:
            DatabaseUnavailable: if the database does not respond.
            DatabaseFailure: if it refuses the row.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((row, done))
        if self._writing is None or self._writing.done():
            # In a context of its own: that of a request says how long it may wait for the database.
            self._writing = asyncio.create_task(self._write_all(), name="rows of sessions", context=Context())
        await done

    async def _write_all(self) -> None:
        while self._waiting:
            asked = [(row, done) for row, done in self._waiting if not done.done()]  # others were given up
            batch, self._waiting = asked[:MOST_TOGETHER], asked[MOST_TOGETHER:]
            writing = run_in_records_thread(_write_together, [row for row, _ in batch])
            (written,) = await asyncio.gather(writing, return_exceptions=True)
            outcomes = [written] * len(batch) if isinstance(written, BaseException) else written
            for (_, done), refused in zip(batch, outcomes, strict=True):
                if done.done():  # given up meanwhile
                    continue
                if refused:
                    done.set_exception(refused)
                else:
                    done.set_result(None)


def _write_together(rows: Sequence[Callable[[], object]]) -> list[Exception | None]:
    with transaction.atomic():
        return [_refusal(row) for row in rows]


def _refusal(row: Callable[[], object]) -> Exception | None:
    """Write one row; return why the database refuses it, which costs no other."""
    refused: Exception | None = None
    try:
        with transaction.atomic():
            row()
    except AWAY:
        raise
    except DatabaseFailure as error:
        refused = error
    return refused


together = per_loop(Together)


class Recorder:
    """Writes the rows of one conversation."""

    def __init__(self, beginning: Beginning) -> None:
        self._beginning = beginning
        self._began_at = timezone.now()
        self._waiting = RecordQueue(beginning.session_id)
        self._in_hand: TurnRecord | EventNote | None = None
        """Being written; still to be written when the writing is cancelled."""
        self._lengths: dict[int, _Lengths] = {}
        """Lengths by ordinal: a turn may be told again, and the last telling counts."""
        self._is_begun = False
        self._ran_from: float | None = None
        """Time when the session began, on the clock of `time.monotonic`; None before that."""
        self.tape = Tape(beginning.session_id)
        self.charges = TurnCharges(beginning.caller, beginning.model, beginning.session_id)
        self.charges.agent = beginning.agent.label if beginning.agent else ""
        self._is_renamed = False
        """Another agent answers, and that is not written yet."""
        self.quality: Callable[[], str] = str
        """Return what the transport knows of its network, in words."""
        self._told: set[int] = set()
        """Ordinals whose end receivers are told of."""

    def traced(self) -> AbstractContextManager[None]:
        """Around all that belongs to the conversation."""
        begun = self._beginning
        return tracing.session(begun.session_id, begun.request_id, model=begun.model, transport=begun.transport)

    def add(self, turn: TurnEnded) -> None:
        if turn.ordinal not in self._lengths:
            _count(turn)
        self._lengths[turn.ordinal] = _Lengths(
            turn.input_audio_ms, turn.output_audio_ms, turn.input_tokens, turn.output_tokens
        )
        if not turn.is_charged:
            self.charges.ended(turn)
        self._waiting.put(TurnRecord(turn, timezone.now() - timedelta(milliseconds=turn.lasted_ms)))
        self.tape.add(turn)

    def answered_by(self, named: str, agent: Answering) -> None:
        """Another agent answers from now on."""
        self._beginning = replace(self._beginning, model=named, agent=agent)
        self.charges.model, self.charges.agent = named, agent.label
        self._is_renamed = True

    def note(self, event: ServerEvent) -> None:
        """Take one event on its way to the caller, in case receivers are told of such; returns at once."""
        self.tape.add(event)
        if kinds := webhook_events.told_by(event):
            self._waiting.put(EventNote(kinds))

    async def run(self) -> None:
        """Write until cancelled."""
        begun = self._beginning
        self._ran_from = time.monotonic()
        metrics.sessions.labels(begun.transport).inc()
        logger.info("session %s: began, %s", begun.session_id, Facts(**begun.facts))
        await self._begin()
        while True:
            await self._waiting.wait()
            self._in_hand = self._waiting.take()
            await self._write(self._in_hand)
            self._in_hand = None

    async def finish(self, close_code: int, close_reason: str) -> None:
        """Write what still waits, and the end. What a database that is away does not take in time is written later."""
        begun, session_id = self._beginning, self._beginning.session_id
        self.tape.stop()
        if self._ran_from is not None:
            seconds = round(time.monotonic() - self._ran_from, 1)
            metrics.sessions.labels(begun.transport).dec()
            metrics.sessions_ended.labels(begun.transport, close_code).inc()
            facts = Facts(code=close_code, seconds=seconds, turns=len(self._lengths), **begun.facts)
            logger.info("session %s: ended, %s", session_id, facts)
            tracing.session_ended(close_code)
        the_rest = self._write_the_rest(close_code, close_reason, timezone.now())
        writing = _spawn(the_rest, f"end of {session_id}")
        await asyncio.wait([writing], timeout=FINISH_S)
        if not writing.done():
            logger.warning("session %s: its end was not recorded within %g s, and will be later", session_id, FINISH_S)
        while len(_unfinished) > MOST_UNFINISHED:
            oldest = next(iter(_unfinished))
            del _unfinished[oldest]
            oldest.cancel()

    async def _write_the_rest(self, close_code: int, close_reason: str, ended_at: datetime) -> None:
        try:
            async with asyncio.timeout(KEEP_TRYING_S):
                if not self._is_begun:
                    await self._begin()
                if self._in_hand is not None:
                    await self._write(self._in_hand)
                while self._waiting:
                    await self._write(self._waiting.take())
                await self._persist(self._charge_the_rest)
                end = partial(self._write_end, close_code, close_reason, ended_at)
                await self._persist(lambda: together().write(end))
                if self.tape.is_on:
                    _spawn(self.tape.keep(), f"recording of {self._beginning.session_id}")
        except (TimeoutError, asyncio.CancelledError) as given_up:
            logger.error("session %s: its end was never recorded", self._beginning.session_id)
            if isinstance(given_up, asyncio.CancelledError):
                raise

    async def _charge_the_rest(self) -> None:
        if not await self.charges.finish():
            raise DatabaseUnavailable

    async def _begin(self) -> None:
        beginning = partial(_write_beginning, self._beginning, own_name(), self._began_at)
        await self._persist(lambda: together().write(beginning))
        self._is_begun = True

    async def _write(self, entry: TurnRecord | EventNote) -> None:
        if isinstance(entry, EventNote):
            await self._persist_row(self._write_note, entry)
            if webhook_events.UPDATED[0] in entry.kinds:
                self._waiting.updated()
            return
        await self._persist_row(self._write_turn, entry)
        await self.charges.write()

    async def _persist_row(self, write: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        await self._persist(lambda: run_in_records_thread(write, *args, **kwargs))

    async def _persist(self, write: Callable[[], Awaitable[object]]) -> None:
        """Write until the database has taken it; a row that it refuses costs that row, not the conversation."""
        is_away = False
        while True:
            try:
                await write()
            except AWAY as error:
                if not is_away:
                    is_away = True
                    logger.warning("session %s: rows wait for the database: %s", self._beginning.session_id, error)
                await asyncio.sleep(RETRY_S)
            except DatabaseFailure:
                logger.exception("session %s: a row could not be written", self._beginning.session_id)
                return
            else:
                return

    # What follows runs on a thread, and is run again when its awaiter is cancelled meanwhile.

    def _write_note(self, note: EventNote) -> None:
        if not note.is_told:
            with transaction.atomic():
                self._tell(note.kinds)
            note.is_told = True

    def _write_turn(self, ended: TurnRecord) -> None:
        turn, keep = ended.turn, settings.TRANSCRIPT_DAYS > 0
        fields = {
            "user_text": _storable(turn.user_text) if keep else "",
            "assistant_text": _storable(turn.assistant_text) if keep else "",
            "heard_text": _storable(turn.heard_text) if keep and turn.is_interrupted else "",
            "status": turn.status,
            "interrupted": turn.is_interrupted,
            "input_audio_ms": turn.input_audio_ms,
            "output_audio_ms": turn.output_audio_ms,
            "input_tokens": turn.input_tokens,
            "output_tokens": turn.output_tokens,
            "is_spoken": turn.is_spoken,
            "end_of_turn_ms": turn.end_of_turn_ms,
            "recognition_ms": turn.recognition_ms,
            "first_token_ms": turn.first_token_ms,
            "first_audio_ms": turn.first_audio_ms,
            "served_by": turn.served_by[:NAME_LENGTH],
        }
        with transaction.atomic():
            self._rename()
            Turn.objects.update_or_create(
                session_id=self._beginning.session_id,
                ordinal=turn.ordinal,
                defaults=fields,
                create_defaults={**fields, "started_at": ended.at},
            )
            if turn.ordinal not in self._told:
                self._tell(webhook_events.ANSWERED)
        self._told.add(turn.ordinal)
        self._is_renamed = False

    def _rename(self) -> None:
        if self._is_renamed:
            RealtimeSession.objects.filter(pk=self._beginning.session_id).update(**_answerer(self._beginning))

    def _write_end(self, close_code: int, close_reason: str, ended_at: datetime) -> None:
        lengths = self._lengths.values()
        self._rename()
        RealtimeSession.objects.filter(pk=self._beginning.session_id).update(
            ended_at=ended_at,
            close_code=close_code,
            close_reason=close_reason[:REASON_LENGTH],
            live_words=None,
            quality=self.quality(),
            turn_count=len(lengths),
            input_audio_ms=sum(turn.input_audio_ms for turn in lengths),
            output_audio_ms=sum(turn.output_audio_ms for turn in lengths),
            input_tokens=sum(turn.input_tokens for turn in lengths),
            output_tokens=sum(turn.output_tokens for turn in lengths),
        )
        self._tell(webhook_events.ENDED)

    def _tell(self, kinds: webhook_events.Kinds) -> None:
        webhook_events.tell(self._beginning.caller.workspace_id, [self._beginning.session_id], kinds)


def _spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Run what is left to do for a conversation that is over."""
    task = asyncio.create_task(work, name=name)
    _unfinished[task] = None
    task.add_done_callback(lambda done: _unfinished.pop(done, None))
    return task


def _count(turn: TurnEnded) -> None:
    metrics.turns.labels(turn.status, str(turn.is_spoken).lower()).inc()
    stages_ms = {
        "end_of_turn": turn.end_of_turn_ms,
        "recognition": turn.recognition_ms,
        "first_token": turn.first_token_ms,
        "first_audio": turn.first_audio_ms,
    }
    if turn.is_spoken:
        metrics.observe_turn(stages_ms)
    facts = {"status": turn.status, "is_spoken": turn.is_spoken, "served_by": turn.served_by}
    tracing.turn_ended(turn.ordinal, turn.lasted_ms, stages_ms, **facts)


async def record_relayed(beginning: Beginning) -> None:
    """Write the only row of a conversation that another service holds. Its end is not seen here: see
    `stale_sessions`."""
    logger.info("session %s: passed on, %s", beginning.session_id, Facts(**beginning.facts))
    try:
        async with asyncio.timeout(FINISH_S):
            await run_in_db_thread(_write_beginning, beginning, "", timezone.now())
    except TimeoutError:
        logger.error("session %s was not recorded within %g s", beginning.session_id, FINISH_S)
    except (DatabaseFailure, DatabaseUnavailable):
        logger.exception("session %s: a row could not be written", beginning.session_id)


def _write_beginning(begun: Beginning, served_by: str, at: datetime) -> None:
    with transaction.atomic():
        _, is_new = RealtimeSession.objects.get_or_create(
            id=begun.session_id,
            defaults={
                "account_id": begun.caller.account_id,
                "workspace_id": begun.caller.workspace_id,
                "api_key_id": begun.caller.key_id,
                "user_id": begun.caller.user_id,
                "is_guest": begun.caller.is_guest,
                **_answerer(begun),
                "transport": begun.transport,
                "entrance": begun.entrance,
                "client_address": begun.client_address,
                "served_by": served_by,
                "started_at": at,
            },
        )
        if is_new:
            webhook_events.tell(begun.caller.workspace_id, [begun.session_id], webhook_events.BEGUN)


def _answerer(begun: Beginning) -> dict[str, Any]:
    return {"model": begun.model, "agent_version": begun.agent.version if begun.agent else None}


def _storable(text: str) -> str:
    """The text as databases take it: halves of surrogate pairs are joined or replaced, and NUL characters left out."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")
