"""`/api-ws/v1/inference`: one WebSocket, several tasks on it, each from `run-task` to its end.

Each task is a session, of recognition (`recognition`) or of synthesis (`synthesis`). Whatever a client sends in the
wrong order fails the task that it names, with a code and a sentence.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from voiceapp.accounts.caller import Caller
from voiceapp.drain import drain_event
from voiceapp.engines.providers import recognized_languages
from voiceapp.errors import RemoteProtocolError
from voiceapp.formats import one_line
from voiceapp.http.error_responses import error_response_of
from voiceapp.http.refusals import Receive, Send
from voiceapp.protocol import run_task as wire
from voiceapp.realtime.admission import admit
from voiceapp.realtime.doors import API_SOCKET
from voiceapp.realtime.handshake import listening_model
from voiceapp.realtime.inference.line import Line
from voiceapp.realtime.inference.recognition import RecognitionTransport, settings_of
from voiceapp.realtime.inference.synthesis import SynthesisTask
from voiceapp.realtime.readings import ReadingEnded

logger = logging.getLogger(__name__)

IDLE_S = 60.0
"""A connection without a task is closed after this."""
NORMAL = 1000


class InferenceConnection:
    """One accepted connection."""

    def __init__(self, caller: Caller, address: str, receive: Receive, send: Send) -> None:
        self._caller = caller
        self._address = address
        self._receive = receive
        self._line = Line(send)
        self._tasks = wire.RunTasks()
        self._hearing: dict[str, RecognitionTransport] = {}
        self._speaking: dict[str, SynthesisTask] = {}
        self._work: dict[str, asyncio.Task[None]] = {}
        self._has_failed = False
        """A task has; the connection is closed when no other runs."""

    async def run(self) -> None:
        """Carry the connection to its end; nothing of it runs on."""
        try:
            async with asyncio.TaskGroup() as group:
                code = await self._listen(group)
                for transport in self._hearing.values():
                    transport.lose(code)
                for task_id in self._speaking:
                    self._silence(task_id, code)
        finally:
            await self._line.close(NORMAL, "")

    async def _listen(self, group: asyncio.TaskGroup) -> int:
        """Until the client leaves, is silent without a task, or a task has failed and no other runs."""
        while True:
            message = await self._next()
            if message is None:
                return NORMAL
            if message["type"] == "websocket.disconnect":
                self._line.lost()
                return int(message.get("code") or 1006)
            try:
                if (text := message.get("text")) is not None:
                    await self._take(wire.read_command(text), group)
                else:
                    await self._hear(message.get("bytes") or b"")
            except wire.RunTaskError as refused:
                await self._refuse(refused)
                if not self._work:
                    return NORMAL

    async def _next(self) -> Any:
        """The next message; None when the connection is to be closed."""
        arrival = asyncio.ensure_future(self._receive())
        stop = asyncio.ensure_future(drain_event().wait_begun())
        try:
            while not arrival.done():
                work = tuple(self._work.values())
                waits = (arrival, *work) if work else (arrival, stop)
                done, _ = await asyncio.wait(
                    waits, timeout=None if work else IDLE_S, return_when=asyncio.FIRST_COMPLETED
                )
                if not done or (not self._work and (self._has_failed or stop.done())):
                    return None
            return arrival.result()
        finally:
            arrival.cancel()
            stop.cancel()

    async def _refuse(self, refused: wire.RunTaskError) -> None:
        """The task that a refused message belongs to fails, if it runs."""
        await self._line.say(wire.task_failed(refused.task_id, refused.code, refused.message))
        if (transport := self._hearing.get(refused.task_id)) is not None:
            transport.lose(NORMAL)
        elif refused.task_id in self._speaking:
            self._silence(refused.task_id, NORMAL)
        if (work := self._work.get(refused.task_id)) is not None:
            await asyncio.wait((work,))

    def _silence(self, task_id: str, code: int) -> None:
        """A task of synthesis is given up, or its client has left with this code."""
        self._speaking[task_id].reading.left(code)
        self._work[task_id].cancel()

    async def _hear(self, data: bytes) -> None:
        task_id = self._tasks.hearing
        if task_id is None:
            raise wire.RunTaskError("Audio came before run-task, or after finish-task.")
        if (transport := self._hearing.get(task_id)) is not None:
            await transport.hear(data)

    async def _take(self, command: wire.RunCommand, group: asyncio.TaskGroup) -> None:
        self._tasks.take(command)
        task_id = command.task_id
        if isinstance(command, wire.RunTask):
            await self._start(command, group)
        elif (transport := self._hearing.get(task_id)) is not None:
            if isinstance(command, wire.FinishTask):
                await transport.finish()
        elif (speech := self._speaking.get(task_id)) is not None:
            if isinstance(command, wire.ContinueTask):
                await speech.write(command.text, is_flush=command.is_flush)
            elif command.is_cancelled:
                work = self._work[task_id]
                self._silence(task_id, NORMAL)
                await asyncio.wait((work,))
                await self._line.say(wire.task_finished(task_id, {}))
            else:
                await speech.finish()

    async def _start(self, command: wire.RunTask, group: asyncio.TaskGroup) -> None:
        task_id = command.task_id
        try:
            work: Coroutine[Any, Any, None] = (
                await self._recognition(command) if command.kind == wire.RECOGNITION else await self._synthesis(command)
            )
        except Exception as error:
            self._tasks.ended(task_id)
            raise _refusal(task_id, error) from error
        self._work[task_id] = group.create_task(self._carry(task_id, work), name=f"inference task {task_id}")

    async def _recognition(self, command: wire.RunTask) -> Coroutine[Any, Any, None]:
        model = listening_model(command.model)
        opening, kind, rate_hz = settings_of(command.parameters, recognized_languages())
        admitted = await admit(self._caller, API_SOCKET, model, self._address)
        admitted = admitted.opened_with(opening, listens_only=True)
        transport = RecognitionTransport(command.task_id, self._line, kind, rate_hz)
        self._hearing[command.task_id] = transport

        async def work() -> None:
            with admitted.seat:
                await self._line.say(wire.task_started(command.task_id))
                await admitted.run(transport)

        return work()

    async def _synthesis(self, command: wire.RunTask) -> Coroutine[Any, Any, None]:
        task = await SynthesisTask.admitted(command, self._caller, self._line, self._address)
        self._speaking[command.task_id] = task
        if command.text:
            await task.write(command.text)
        if not command.takes_more:
            await task.finish()
        return task.run()

    async def _carry(self, task_id: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self._has_failed = True
            refused = _refusal(task_id, error)
            await self._line.say(wire.task_failed(task_id, refused.code, refused.message))
        finally:
            transport = self._hearing.get(task_id)
            self._has_failed = self._has_failed or (transport is not None and transport.has_failed)
            self._tasks.ended(task_id)
            self._hearing.pop(task_id, None)
            self._work.pop(task_id, None)
            if (speech := self._speaking.pop(task_id, None)) is not None:
                await speech.reading.finish()  # the task's id may be used again meanwhile


def _refusal(task_id: str, error: Exception) -> wire.RunTaskError:
    """What a task fails with; what nobody expected is logged whole."""
    if isinstance(error, RemoteProtocolError):
        return wire.RunTaskError(error.message, code=error.code, task_id=task_id)
    if isinstance(error, ReadingEnded):
        return wire.RunTaskError(error.reason, code=error.error or "ServiceUnavailable", task_id=task_id)
    response = error_response_of(error)
    if response.is_fault:
        logger.error("inference task %s: failed with an unexpected error", one_line(task_id), exc_info=error)
    return wire.RunTaskError(response.message, code=response.code, task_id=task_id)
