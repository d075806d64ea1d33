"""One conversation, from its first event to its last: two pumps between a transport and a realtime stream.

The bridge owns the tasks and the reasons to end: the caller leaves or finishes, time is up, the key is revoked or its
budget used up, the server stops, something is sent too fast. Whatever the reason, the caller is told, the
record is closed and nothing is left running.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn, TypeVar

from voiceapp.accounts.seats import Seat
from voiceapp.engines.interfaces import AgentTerms, Call, RealtimeModel, RealtimeStream
from voiceapp.errors import AccessDenied, ClientSilent, EngineError, FloodError, RequestRefused, Throttled, VoiceError
from voiceapp.formats import duration, identifier
from voiceapp.protocol.speaking.playout import LEAD_MS
from voiceapp.protocol.speaking.stock_replies import StockReply
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import PlayoutCut, TurnEnded
from voiceapp.realtime.close_codes import (
    ABANDONED,
    BUDGET_USED_UP,
    CALLER_LEFT,
    CONNECTION_LOST,
    ENDED_BY_OPERATOR,
    FLOOD,
    INTERNAL_ERROR,
    KEY_REVOKED,
    LIFETIME_OVER,
    NO_SEAT,
    NORMAL,
    SERVER_STOPPING,
    TEMPORARY_KEY_OVER,
    UNAVAILABLE,
)
from voiceapp.realtime.lifetime.end_conditions import STOPPING, EndConditions, SessionEnded
from voiceapp.realtime.lifetime.operator_requests import LiveWords, request_watch
from voiceapp.realtime.records.listening import OperatorListener
from voiceapp.realtime.records.recorder import Recorder
from voiceapp.realtime.records.turn_charges import TurnCharges
from voiceapp.realtime.transports.interface import Disconnected, Transport

logger = logging.getLogger(__name__)

FINISHED = "The session is finished."
ANNOUNCED = frozenset(
    {
        *(LIFETIME_OVER, INTERNAL_ERROR, KEY_REVOKED, BUDGET_USED_UP, FLOOD),
        *(TEMPORARY_KEY_OVER, NO_SEAT, UNAVAILABLE, ENDED_BY_OPERATOR),
    }
)
"""Ends that `session.closing` precedes; it does so too when the server stops, long before that end."""

LAST_WORDS_S = 20.0
"""Longest wait until a caller whose budget is used up has been told so, aloud."""

Found = TypeVar("Found", bound=Exception)


@dataclass(slots=True)
class _Controls:
    """Switches that operators turn in a conversation, and its latest words for them."""

    words: LiveWords
    is_muted: bool = False
    """The caller's sound is not passed on."""


async def run(
    transport: Transport, model: RealtimeModel, call: Call, recorder: Recorder, limits: EndConditions, seat: Seat
) -> None:
    """Carry one accepted conversation to its end; closes the transport and the record, whatever happens.

    The seat is taken first, unless it was taken before, and given back when the transport is closed: what is still to
    be written then holds up no other conversation.
    """
    ended = SessionEnded(SERVER_STOPPING, "The server ended the conversation.")  # stands when this task is cancelled
    try:
        ended = await _converse(transport, model, call, recorder, limits, seat)
    finally:
        try:
            await _say_goodbye(transport, ended)
        finally:
            seat.release()
            await recorder.finish(ended.code, ended.reason)


async def _converse(
    transport: Transport, model: RealtimeModel, call: Call, recorder: Recorder, limits: EndConditions, seat: Seat
) -> SessionEnded:
    """Run every task of a conversation until one of them ends it; returns why. Nothing runs on afterwards."""
    stream: RealtimeStream | None = None
    ended: SessionEnded | None = None
    controls = _Controls(LiveWords(lambda: recorder.quality()))
    try:
        try:
            await seat.take()
        except Throttled as full:
            return SessionEnded(NO_SEAT, full.message, error=full.code)
        async with asyncio.TaskGroup() as tasks:
            charges = recorder.charges

            async def prompted(prompt: object, ask: Callable[[object], Awaitable[AgentTerms]]) -> AgentTerms:
                terms = await ask(prompt)
                tasks.create_task(_end_after(terms.lasts_s), name=f"session {call.session_id}: lifetime of its agent")
                return terms

            call = replace(
                call,
                before_response=charges.before_response,
                charge=charges.speech,
                prompted=call.prompted and partial(prompted, ask=call.prompted),
            )
            stream = model.open(call, tasks)
            for name, work in (
                ("recorder", recorder.run()),
                ("recording", recorder.tape.run(call)),
                ("from the caller", _listen(transport, stream, recorder, controls)),
                ("to the caller", _talk(transport, stream, recorder, controls.words)),
                ("lifetime", _end_after(limits.lifetime_s)),
                ("drain", _end_when_stopping(transport, stream, limits)),
                ("revocation", _end_when_revoked(limits)),
                ("operator", _obey(transport, stream, call.session_id, recorder, controls)),
                ("budget", _end_when_used_up(stream, charges)),
            ):
                tasks.create_task(work, name=f"session {call.session_id}: {name}")
    except* SessionEnded as group:
        ended = _first(group, SessionEnded)
    except* (EngineError, RequestRefused, ClientSilent) as group:
        ended = ended or _ended_by(_first(group, VoiceError))
    except* Exception:
        logger.exception("session %s: failed with an unexpected error", call.session_id)
    finally:
        for record in stream.close() if stream else ():
            recorder.add(record)
    return ended or SessionEnded(INTERNAL_ERROR, "Something went wrong.")


async def _listen(transport: Transport, stream: RealtimeStream, recorder: Recorder, controls: _Controls) -> NoReturn:
    is_finished = False
    while True:
        try:
            event = await transport.receive()
            if controls.is_muted and isinstance(event, ev.AudioAppend):
                continue
            recorder.tape.add(event)
            is_finished = is_finished or isinstance(event, ev.SessionFinish)
            await stream.receive(event)
        except ev.EventError as refused:
            await transport.send(
                ev.ErrorEvent(
                    event_id=identifier("event"),
                    code=refused.code,
                    message=refused.message,
                    param=refused.param,
                    about=refused.event_id,
                )
            )
        except FloodError as flood:
            raise SessionEnded(FLOOD, flood.message, error=flood.code) from None
        except Disconnected as gone:
            if is_finished:  # and did not wait for the last words
                raise SessionEnded(NORMAL, FINISHED) from None
            raise SessionEnded(gone.code, CONNECTION_LOST if gone.code == ABANDONED else CALLER_LEFT) from None


async def _obey(
    transport: Transport, stream: RealtimeStream, session_id: str, recorder: Recorder, controls: _Controls
) -> NoReturn:
    """Do what operators ask of the conversation.

    Raises:
        SessionEnded: if they end it.
    """
    with request_watch().of(session_id, controls.words) as requests:
        while True:
            request = await requests.get()
            if isinstance(request, OperatorListener):
                await _tell_of(request, transport, stream, recorder)
                continue
            match request.kind:
                case "end":
                    raise SessionEnded(ENDED_BY_OPERATOR, "An operator has ended the conversation.")
                case "say":
                    stream.notify(request.words)
                case "mute" | "unmute":
                    controls.is_muted = request.kind == "mute"
                    await stream.receive(ev.AudioClear())
                    stream.notify(StockReply.MUTED if controls.is_muted else StockReply.UNMUTED)


async def _tell_of(
    listener: OperatorListener, transport: Transport, stream: RealtimeStream, recorder: Recorder
) -> None:
    """Let an operator listen, where the caller can be told aloud and in an event; or tell that they have ceased to."""
    tape = recorder.tape
    was_heard = bool(tape.listeners)
    if listener.over.is_set():
        tape.listeners.discard(listener)
    elif tape.session and (was_heard or stream.notify(StockReply.OPERATOR_LISTENING)):
        tape.listeners.add(listener)
        listener.begin(tape.session)
    else:
        listener.end()
    if bool(tape.listeners) != was_heard:
        told = tape.told(ev.SessionUpdated(event_id=identifier("event"), session=tape.session))
        tape.add(told)
        await _say(transport, told)
    listener.decided.set()


async def _talk(transport: Transport, stream: RealtimeStream, recorder: Recorder, words: LiveWords) -> NoReturn:
    try:
        async with aclosing(stream.events()) as events:
            async for event in events:
                if isinstance(event, TurnEnded):
                    recorder.add(event)
                elif isinstance(event, PlayoutCut):
                    recorder.tape.add(event)
                    transport.cut_playout()
                else:
                    recorder.note(event)
                    words.add(event)
                    await transport.send(recorder.tape.told(event))
    except FloodError as slow:
        raise SessionEnded(FLOOD, slow.message, error=slow.code) from None
    raise SessionEnded(NORMAL, FINISHED)


async def _end_after(lifetime_s: float) -> NoReturn:
    await asyncio.sleep(lifetime_s)
    raise SessionEnded(LIFETIME_OVER, f"The session has reached its longest duration of {duration(lifetime_s)}.")


async def _end_when_stopping(transport: Transport, stream: RealtimeStream, limits: EndConditions) -> NoReturn:
    await limits.stopping()
    await _say(transport, ev.SessionClosing(event_id=identifier("event"), code=SERVER_STOPPING, reason=STOPPING))
    try:
        async with asyncio.timeout(limits.drain_s):
            await stream.wait_idle()
    except TimeoutError:
        logger.info("an answer was cut off by the stop of the server")
    raise SessionEnded(SERVER_STOPPING, STOPPING)


async def _end_when_revoked(limits: EndConditions) -> NoReturn:
    await limits.revoked()
    raise limits.revocation.ended()


async def _end_when_used_up(stream: RealtimeStream, charges: TurnCharges) -> NoReturn:
    """The stream says in place of a reply that the budget is used up; the conversation ends when that was sent."""
    await charges.used_up()
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_WORDS_S):
            await stream.wait_idle()
            await asyncio.sleep(LEAD_MS / 1000)  # sent so far ahead of what is heard
    raise SessionEnded(BUDGET_USED_UP, "This API key's budget for this month is used up.", error="budget_used_up")


async def _say_goodbye(transport: Transport, ended: SessionEnded) -> None:
    """Tell the caller why the conversation is over, as far as they still listen, and close."""
    if ended.error is not None:
        fault = "server_error" if ended.code == UNAVAILABLE else "invalid_request_error"
        await _say(
            transport,
            ev.ErrorEvent(event_id=identifier("event"), code=ended.error, message=ended.reason, error_type=fault),
        )
    if ended.code in ANNOUNCED:
        await _say(transport, ev.SessionClosing(event_id=identifier("event"), code=ended.code, reason=ended.reason))
    await transport.close(ended.code, ended.reason)


async def _say(transport: Transport, event: ev.ServerEvent) -> None:
    """Last words: who reads too slowly does not get them, and ends for that reason anyway."""
    with suppress(FloodError):
        await transport.send(event)


def _ended_by(error: VoiceError) -> SessionEnded:
    if isinstance(error, EngineError):
        code = UNAVAILABLE
    else:  # the model was allowed at the door
        code = BUDGET_USED_UP if isinstance(error, AccessDenied | Throttled) else NORMAL
    return SessionEnded(code, error.message, error=error.code)


def _first(group: BaseExceptionGroup[Found], kind: type[Found]) -> Found:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, kind)
    return error
