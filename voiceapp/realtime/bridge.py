"""One conversation, from its first event to its last: two pumps between a transport and a realtime stream.

The bridge owns the tasks and the reasons to end: the caller leaves or finishes, time is up, the key is revoked, the
server stops, something is sent too fast. Whatever the reason, the caller is told, the books are closed and nothing is
left running.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import NoReturn

from voiceapp.engines.interfaces import Call, RealtimeModel, RealtimeStream
from voiceapp.errors import EngineError, FloodError
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

DRAIN_ANSWER_S = 18.0
"""How long an answer in progress may go on while the server stops; ends before the server's own patience."""


class _Ended(Exception):
    """Leaves the task group with the reason why the conversation is over."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Limits:
    """What may end a conversation from outside."""

    lifetime_s: float
    stopping: Callable[[], Awaitable[None]]
    """Returns when the server begins to stop."""
    revoked: Callable[[], Awaitable[None]]
    """Returns when the caller's key may not be used any more."""


async def run(transport: Transport, model: RealtimeModel, call: Call, recorder: Recorder, limits: Limits) -> None:
    """Carry one accepted conversation to its end; closes the transport and the books."""
    ended = _Ended(INTERNAL_ERROR, "Something went wrong.")
    stream: RealtimeStream | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            stream = model.open(call, tasks)
            tasks.create_task(recorder.run())
            tasks.create_task(_listen(transport, stream))
            tasks.create_task(_talk(transport, stream, recorder))
            tasks.create_task(_end_after(limits.lifetime_s))
            tasks.create_task(_end_when_stopping(transport, stream, limits))
            tasks.create_task(_end_when_revoked(transport, limits))
    except* _Ended as group:
        ended = _first(group)
    except* EngineError as group:
        error = group.exceptions[0]
        assert isinstance(error, EngineError)
        ended = _Ended(UNAVAILABLE, error.message)
    except* Exception:
        logger.exception("session %s failed", call.session_id)
    finally:
        for record in stream.close() if stream else ():
            recorder.add(record)
        await _say_goodbye(transport, ended)
        await recorder.finish(ended.code, ended.reason)


async def _listen(transport: Transport, stream: RealtimeStream) -> NoReturn:
    while True:
        try:
            await stream.receive(await transport.receive())
        except ev.EventError as refused:
            await transport.send(
                ev.ErrorEvent(code=refused.code, message=refused.message, param=refused.param, about=refused.event_id)
            )
        except FloodError as flood:
            await transport.send(ev.ErrorEvent(code=flood.code, message=flood.message, param=flood.param))
            raise _Ended(FLOOD, flood.message) from None
        except Disconnected as gone:
            raise _Ended(gone.code, "The caller left.") from None


async def _talk(transport: Transport, stream: RealtimeStream, recorder: Recorder) -> NoReturn:
    try:
        async with aclosing(stream.events()) as events:
            async for event in events:
                if isinstance(event, TurnEnded):
                    recorder.add(event)
                else:
                    await transport.send(event)
    except FloodError as slow:
        raise _Ended(FLOOD, slow.message) from None
    except Disconnected as gone:
        raise _Ended(gone.code, "The caller left.") from None
    raise _Ended(NORMAL, "The session is finished.")


async def _end_after(lifetime_s: float) -> NoReturn:
    await asyncio.sleep(lifetime_s)
    minutes = lifetime_s / 60
    raise _Ended(LIFETIME_OVER, f"The session has reached its longest duration of {minutes:g} minutes.")


async def _end_when_stopping(transport: Transport, stream: RealtimeStream, limits: Limits) -> NoReturn:
    await limits.stopping()
    reason = "The server is stopping; connect again."
    await transport.send(ev.SessionClosing(code=SERVER_STOPPING, reason=reason))
    try:
        async with asyncio.timeout(DRAIN_ANSWER_S):
            await stream.wait_idle()
    except TimeoutError:
        logger.info("an answer was cut off by the stop of the server")
    raise _Ended(SERVER_STOPPING, reason)


async def _end_when_revoked(transport: Transport, limits: Limits) -> NoReturn:
    await limits.revoked()
    message = "The API key of this session is no longer valid."
    await transport.send(ev.ErrorEvent(code="invalid_api_key", message=message))
    raise _Ended(KEY_REVOKED, message)


async def _say_goodbye(transport: Transport, ended: _Ended) -> None:
    if ended.code in (LIFETIME_OVER, KEY_REVOKED, FLOOD, INTERNAL_ERROR, UNAVAILABLE):
        await transport.send(ev.SessionClosing(code=ended.code, reason=ended.reason))
    await transport.close(ended.code, ended.reason)


def _first(group: BaseExceptionGroup[_Ended]) -> _Ended:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, _Ended)
    return error
