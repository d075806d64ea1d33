"""A task as the transport of its session: what recognition and synthesis have in common."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from voiceapp.errors import FloodError
from voiceapp.formats import one_line
from voiceapp.http.error_responses import error_response_of
from voiceapp.protocol import run_task as wire
from voiceapp.protocol.wire.reading import JsonObject
from voiceapp.realtime.close_codes import LIFETIME_OVER, NORMAL, SERVER_STOPPING
from voiceapp.realtime.lifetime.end_conditions import SessionEnded
from voiceapp.realtime.transports.interface import Disconnected

logger = logging.getLogger(__name__)

Say = Callable[[JsonObject], Awaitable[None]]


class TaskTransport:
    """One task on a connection that may carry others."""

    def __init__(self, task_id: str, say: Say) -> None:
        """`say` sends an event to the client."""
        self._task_id = task_id
        self._say = say
        self._lost: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.is_over = False
        """Nothing more is told of the task; its id may be used again."""
        self.has_failed = False

    def lose(self, code: int) -> None:
        """The connection is gone, or the task is given up."""
        self.is_over = True
        if not self._lost.done():
            self._lost.set_result(code)

    def check_lost(self) -> None:
        if self._lost.done():
            raise Disconnected(self._lost.result())

    async def started(self) -> None:
        await self._say(wire.task_started(self._task_id))

    async def finished(self, usage: JsonObject, *, has_output: bool = True) -> None:
        self.is_over = True
        await self._say(wire.task_finished(self._task_id, usage, has_output=has_output))

    async def fail(self, code: str, message: str) -> None:
        self.has_failed = True
        self.lose(NORMAL)
        await self._say(wire.task_failed(self._task_id, code, message))

    def cut_playout(self) -> None:
        """Nothing is played here."""

    async def close(self, code: int, reason: str) -> None:
        if not self.is_over:
            is_ours = code in (SERVER_STOPPING, LIFETIME_OVER)
            with suppress(FloodError):
                await self.fail("ServiceUnavailable" if is_ours else "InternalError", reason)
        self.lose(code)


def refusal(task_id: str, error: Exception) -> wire.RunTaskError:
    """The error with which a task fails that cannot begin; an unexpected one is logged whole."""
    if isinstance(error, SessionEnded):
        return wire.RunTaskError(error.reason, code=error.error or "ServiceUnavailable", task_id=task_id)
    response = error_response_of(error)
    if response.is_fault:
        logger.error("inference task %s: failed with an unexpected error", one_line(task_id), exc_info=error)
    return wire.RunTaskError(response.message, code=response.code, task_id=task_id)
