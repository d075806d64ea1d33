"""A session that only reads text aloud: who may open it, its seat, record and charges, and what may end it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, NoReturn

from voiceapp.accounts.caller import Caller
from voiceapp.accounts.charges import Charge, charge, require_budget, require_model
from voiceapp.accounts.seats import Seat, seats
from voiceapp.catalogue.cards import ModelCard
from voiceapp.drain import drain_event
from voiceapp.errors import AccessDenied, FloodError, RequestRefused, ServiceUnavailable, Throttled, VoiceError
from voiceapp.formats import duration
from voiceapp.protocol.work import TurnEnded
from voiceapp.realtime import close_codes
from voiceapp.realtime.bridge import FINISHED
from voiceapp.realtime.doors import API_SOCKET, Door
from voiceapp.realtime.end_conditions import EndConditions, end_conditions
from voiceapp.realtime.inference.line import TIMED_OUT
from voiceapp.realtime.inference.speech import Speech
from voiceapp.realtime.records import Beginning, Recorder

STOPPING = "The server is stopping; connect again."


class ReadingEnded(Exception):
    """The session may not go on, for a reason that lies outside it."""

    def __init__(self, code: int, reason: str, *, error: str | None = None) -> None:
        """`code` is the close code, `error` the code of an error event, where the client's key is at fault."""
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.error = error


class ReadingSession:
    """One admitted session; `finish` must follow, however its work ends."""

    def __init__(self, card: ModelCard, beginning: Beginning, limits: EndConditions, seat: Seat) -> None:
        self.id = beginning.session_id
        self.card = card
        self.seat = seat
        self.ending = (close_codes.SERVER_STOPPING, "The server ended the conversation.")
        """Close code and reason; these stand when the work is cancelled."""
        self._caller = beginning.caller
        self._limits = limits
        self._recorder = Recorder(beginning)
        self._turns = 0

    def charge(self, request_id: str) -> AbstractAsyncContextManager[Charge]:
        """Around one answer."""
        return charge(self._caller, operation="speech", model=self.card.name, family="tts", request_id=request_id)

    def left(self, code: int) -> None:
        """The client has left, with this close code."""
        self.ending = close_codes.left_with(code)

    def spoke(self, speech: Speech, status: str) -> None:
        """Record one answer, as far as it was spoken; its charge is a matter of its own."""
        if not speech.characters:
            return
        self._turns += 1
        turn = TurnEnded(
            ordinal=self._turns,
            status=status,
            user_text="",
            assistant_text=speech.text,
            heard_text=speech.text,
            is_interrupted=False,
            input_audio_ms=0,
            output_audio_ms=speech.audio_ms,
            input_tokens=0,
            output_tokens=0,
            is_spoken=False,
            end_of_turn_ms=None,
            recognition_ms=None,
            first_token_ms=None,
            first_audio_ms=None,
        )
        self._recorder.add(turn, is_charged=True)

    async def carry(self, work: Coroutine[Any, Any, tuple[int, str] | None]) -> None:
        """Do the work of the session, which may return how it ended, until it is done or may not go on.

        Raises:
            ReadingEnded: if something outside ends it first.
            VoiceError: what the work raises.
        """
        failed: Exception | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                beside = [
                    tasks.create_task(other, name=f"session {self.id}: {name}")
                    for name, other in (
                        ("recorder", self._recorder.run()),
                        ("lifetime", self._end_after()),
                        ("drain", self._end_when_stopping()),
                        ("revocation", self._end_when_revoked()),
                    )
                ]
                self.ending = await work or (close_codes.NORMAL, FINISHED)
                for other in beside:
                    other.cancel()
        except* Exception as group:
            failed = _first(group)
        if failed is not None:
            self.ending = _ending_of(failed)
            raise failed

    async def finish(self) -> None:
        """Give the seat back, and write what still waits and the end."""
        with self.seat.leaving():
            await self._recorder.finish(*self.ending)

    async def _end_after(self) -> NoReturn:
        await asyncio.sleep(self._limits.lifetime_s)
        reason = f"The session has reached its longest duration of {duration(self._limits.lifetime_s)}."
        raise ReadingEnded(close_codes.LIFETIME_OVER, reason)

    async def _end_when_stopping(self) -> NoReturn:
        await self._limits.stopping()
        await asyncio.sleep(self._limits.drain_s)
        raise ReadingEnded(close_codes.SERVER_STOPPING, STOPPING)

    async def _end_when_revoked(self) -> NoReturn:
        await self._limits.revoked()
        raise _revoked(self._limits)


async def admit_reading(caller: Caller, card: ModelCard, model: str, address: str) -> ReadingSession:
    """Let a program open a session, or say why not; `model` is what it calls the card's.

    Raises:
        AccessDenied: the caller's key may not be used for sessions, or not for this model, or its budget is used up.
        ServiceUnavailable: the server is stopping.
        Throttled: no seat is free.
    """
    if drain_event().begun:
        raise ServiceUnavailable("The server is stopping; connect again in a moment.")
    caller.require("realtime")
    require_model(caller, card.name, card.kind)
    await require_budget(caller, card.name, card.kind)
    seat = seats().seat(caller, address)
    await seat.take()
    beginning = Beginning(
        caller=caller,
        model=model,
        transport=API_SOCKET.transport,
        entrance=API_SOCKET.entrance,
        client_address=address,
    )
    limits = end_conditions(
        caller, "", lifetime_s=seat.lifetime_s, ends_with_temporary_key=API_SOCKET.ends_with_temporary_key
    )
    return ReadingSession(card, beginning, limits, seat)


async def connection_ended(caller: Caller, door: Door) -> ReadingEnded:
    """How a connection that carries sessions one after the other ends from outside. Its caller was looked up once, so
    it lasts no longer than a session."""
    limits = end_conditions(
        caller, "", lifetime_s=seats().lifetime_s(caller), ends_with_temporary_key=door.ends_with_temporary_key
    )
    endings = {
        asyncio.ensure_future(limits.stopping()): ReadingEnded(close_codes.NORMAL, STOPPING),
        asyncio.ensure_future(limits.revoked()): _revoked(limits),
        asyncio.ensure_future(asyncio.sleep(limits.lifetime_s)): ReadingEnded(
            close_codes.LIFETIME_OVER, "The connection has reached its longest duration; connect again."
        ),
    }
    try:
        done, _ = await asyncio.wait(endings, return_when=asyncio.FIRST_COMPLETED)
        return endings[done.pop()]
    finally:
        for waiting in endings:
            waiting.cancel()


def _revoked(limits: EndConditions) -> ReadingEnded:
    return ReadingEnded(limits.revocation.code, limits.revocation.reason, error=limits.revocation.error)


def _first(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _ending_of(error: Exception) -> tuple[int, str]:
    """Close code and reason of a session whose work failed."""
    if isinstance(error, ReadingEnded):
        return error.code, error.reason
    if not isinstance(error, VoiceError):
        return close_codes.INTERNAL_ERROR, "Something went wrong."
    if isinstance(error, FloodError) and error.code != TIMED_OUT:
        return close_codes.FLOOD, error.message
    if isinstance(error, AccessDenied | Throttled):  # the model was allowed at the door
        return close_codes.BUDGET_USED_UP, error.message
    is_ours = not isinstance(error, RequestRefused | FloodError)
    return (close_codes.UNAVAILABLE if is_ours else close_codes.NORMAL), error.message
