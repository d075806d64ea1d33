"""One conversation, from its first event to its last: two pumps between a transport and a realtime stream.

The bridge owns the tasks and the reasons to end: the caller leaves or finishes, time is up, the key is revoked, the
server stops, something is sent too fast. Whatever the reason, the caller is told, the books are closed and nothing is
left running.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from voiceapp.engines.interfaces import Call, RealtimeModel, RealtimeStream
from voiceapp.errors import EngineError, FloodError
from voiceapp.formats import identifier
from voiceapp.protocol import events as ev
from voiceapp.protocol.work import TurnEnded
from voiceapp.realtime.records import Recorder
from voiceapp.realtime.transports.interface import Disconnected, Transport

logger = logging.getLogger(__name__)

NORMAL = 1000
LIFETIME_OVER = 4000
INTERNAL_ERROR = 4011
SERVER_STOPPING = 4012
KEY_REVOKED = 4401
FLOOD = 4408
UNAVAILABLE = 4503
ANNOUNCED = frozenset({LIFETIME_OVER, INTERNAL_ERROR, KEY_REVOKED, FLOOD, UNAVAILABLE})
"""Ends that `session.closing` precedes; it does so too when the server stops, long before that end."""

Found = TypeVar("Found", bound=Exception)


class _Ended(Exception):
    """Leaves the task group with the reason why the conversation is over."""

    def __init__(self, code: int, reason: str, *, error: str | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.error = error
        """Code of an error event to say before the end, where the caller or an engine is at fault."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What may end a conversation from outside."""

    lifetime_s: float
    drain_s: float
    """How long an answer in progress may go on while the server stops."""
    stopping: Callable[[], Awaitable[None]]
    """Returns when the server begins to stop."""
    revoked: Callable[[], Awaitable[None]]
    """Returns when the caller's key may not be used any more, or a person's login."""
    has_key: bool = True
    """Whether the caller came with a key."""


async def run(transport: Transport, model: RealtimeModel, call: Call, recorder: Recorder, limits: Limits) -> None:
    """Carry one accepted conversation to its end; closes the transport and the books, whatever happens."""
    ended = _Ended(SERVER_STOPPING, "The server ended the conversation.")  # stands when this task is cancelled
    try:
        ended = await _converse(transport, model, call, recorder, limits)
    finally:
        try:
            await _say_goodbye(transport, ended)
        finally:
            await recorder.finish(ended.code, ended.reason)


async def _converse(
    transport: Transport, model: RealtimeModel, call: Call, recorder: Recorder, limits: Limits
) -> _Ended:
    """Run every task of a conversation until one of them ends it; returns why. Nothing runs on afterwards."""
    stream: RealtimeStream | None = None
    ended: _Ended | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            stream = model.open(call, tasks)
            tasks.create_task(recorder.run())
            tasks.create_task(_listen(transport, stream))
            tasks.create_task(_talk(transport, stream, recorder))
            tasks.create_task(_end_after(limits.lifetime_s))
            tasks.create_task(_end_when_stopping(transport, stream, limits))
            tasks.create_task(_end_when_revoked(limits))
    except* _Ended as group:
        ended = _first(group, _Ended)
    except* EngineError as group:
        error = _first(group, EngineError)
        ended = ended or _Ended(UNAVAILABLE, error.message, error=error.code)
    except* Exception:
        logger.exception("session %s failed", call.session_id)
    finally:
        for record in stream.close() if stream else ():
            recorder.add(record)
    return ended or _Ended(INTERNAL_ERROR, "Something went wrong.")


async def _listen(transport: Transport, stream: RealtimeStream) -> NoReturn:
    while True:
        try:
            await stream.receive(await transport.receive())
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
            raise _Ended(FLOOD, flood.message, error=flood.code) from None
        except Disconnected as gone:
            raise _Ended(gone.code, "The caller left.") from None


async def _talk(transport: Transport, stream: RealtimeStream, recorder: Recorder) -> NoReturn:
    try:
        async with aclosing(stream.events()) as events:
            async for event in events:
                if isinstance(event, TurnEnded):
                    recorder.add(event)
                else:
                    recorder.note(event)
                    await transport.send(event)
    except FloodError as slow:
        raise _Ended(FLOOD, slow.message, error=slow.code) from None
    raise _Ended(NORMAL, "The session is finished.")


async def _end_after(lifetime_s: float) -> NoReturn:
    await asyncio.sleep(lifetime_s)
    minutes = lifetime_s / 60
    raise _Ended(LIFETIME_OVER, f"The session has reached its longest duration of {minutes:g} minutes.")


async def _end_when_stopping(transport: Transport, stream: RealtimeStream, limits: Limits) -> NoReturn:
    await limits.stopping()
    reason = "The server is stopping; connect again."
    await _say(transport, ev.SessionClosing(event_id=identifier("event"), code=SERVER_STOPPING, reason=reason))
    try:
        async with asyncio.timeout(limits.drain_s):
            await stream.wait_idle()
    except TimeoutError:
        logger.info("an answer was cut off by the stop of the server")
    raise _Ended(SERVER_STOPPING, reason)


async def _end_when_revoked(limits: Limits) -> NoReturn:
    await limits.revoked()
    if limits.has_key:
        raise _Ended(KEY_REVOKED, "The API key of this session is no longer valid.", error="invalid_api_key")
    raise _Ended(KEY_REVOKED, "You are no longer signed in, or may not talk here any more.", error="signed_out")


async def _say_goodbye(transport: Transport, ended: _Ended) -> None:
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


def _first(group: BaseExceptionGroup[Found], kind: type[Found]) -> Found:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, kind)
    return error
