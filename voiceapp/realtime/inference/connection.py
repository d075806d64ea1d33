"""`/api-ws/v1/inference`, `/api/v1/webrtc/inference`: one connection, several tasks on it, each from `run-task` to its
end.

Each task is a session, of recognition (`recognition`) or of synthesis (`synthesis`). Whatever a client sends in the
wrong order fails the task that it names, with a code and a sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from voiceapp.accounts.caller import Caller
from voiceapp.engines.providers import recognized_languages
from voiceapp.errors import FloodError, InvalidParameter
from voiceapp.http.refusals import Receive, Send
from voiceapp.protocol import run_task as wire
from voiceapp.realtime.admission import admit
from voiceapp.realtime.close_codes import FLOOD, NORMAL
from voiceapp.realtime.doors import API_SOCKET, Door
from voiceapp.realtime.handshake import listening_model
from voiceapp.realtime.inference.line import SocketLine, TaskLine
from voiceapp.realtime.inference.recognition import RecognitionTransport, Unheard, settings_of
from voiceapp.realtime.inference.refusals import refusal
from voiceapp.realtime.inference.synthesis import SynthesisTask
from voiceapp.realtime.readings import connection_ended
from voiceapp.realtime.transports.interface import Disconnected

IDLE_S = 60.0
"""A connection without a task is closed after this."""


class InferenceConnection:
    """One accepted connection."""

    @classmethod
    def on_socket(
        cls, caller: Caller, address: str, receive: Receive, send: Send, lost: asyncio.Future[int] | None = None
    ) -> InferenceConnection:
        """An accepted WebSocket; `lost` is its close code when it has ended, where the server says so at once."""
        return cls(caller, API_SOCKET, address, SocketLine(receive, send, lost))

    def __init__(self, caller: Caller, door: Door, address: str, line: TaskLine) -> None:
        self._caller = caller
        self._door = door
        self._address = address
        self._line = line
        self._over = asyncio.create_task(connection_ended(caller, door), name="inference connection: end")
        """Done when no further task may begin; those that run end by conditions of their own."""
        self._now = asyncio.get_running_loop().time
        self._idle_since = self._now()
        self._tasks = wire.RunTasks()
        self._unheard = Unheard()
        self._hearing: dict[str, RecognitionTransport] = {}
        self._speaking: dict[str, SynthesisTask] = {}
        self._work: dict[str, asyncio.Task[None]] = {}
        self._has_failed = False
        """A task has; the connection is closed when no other runs."""

    async def run(self) -> None:
        """Carry the connection to its end; nothing of it runs on."""
        code = NORMAL
        try:
            async with asyncio.TaskGroup() as group:
                code = await self._until_over(group)
                for transport in self._hearing.values():
                    transport.lose(code)
                for task_id in self._speaking:
                    self._silence(task_id, code)
        finally:
            self._over.cancel()
            await self._line.close(code, "")

    async def _until_over(self, group: asyncio.TaskGroup) -> int:
        """As `_listen`, which may be waiting for room when the client is gone."""
        listening = asyncio.create_task(self._listen(group), name="inference connection: listening")
        gone = asyncio.create_task(self._line.gone(), name="inference connection: gone")
        try:
            await asyncio.wait((listening, gone), return_when=asyncio.FIRST_COMPLETED)
            return listening.result() if listening.done() else gone.result()
        finally:
            listening.cancel()
            gone.cancel()
            await asyncio.gather(listening, gone, return_exceptions=True)

    async def _listen(self, group: asyncio.TaskGroup) -> int:
        """Until the client leaves, is silent without a task, or a task has failed and no other runs."""
        while True:
            try:
                message = await self._next()
                if message is None:
                    return self._over.result().code if self._over.done() else NORMAL
                if isinstance(message, str):
                    await self._take(wire.read_command(message), group)
                else:
                    await self._hear(message)
            except Disconnected as gone:
                return gone.code
            except FloodError as flood:
                with suppress(FloodError):  # it reads too slowly to be told
                    await self._line.say(wire.task_failed("", flood.code, flood.message))
                return FLOOD
            except wire.RunTaskError as refused:
                try:
                    await self._refuse(refused)
                except FloodError:
                    return FLOOD
                if not self._work:
                    return NORMAL

    async def _next(self) -> str | bytes | None:
        """The next message, or audio; None when the connection is to be closed."""
        arrival = asyncio.ensure_future(self._line.receive())
        try:
            while not arrival.done():
                work = tuple(self._work.values())
                waits = (arrival, *work) if work else (arrival, self._over)
                patience_s = None if work else max(0.0, self._idle_since + IDLE_S - self._now())
                done, _ = await asyncio.wait(waits, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
                if not done or (not self._work and (self._has_failed or self._over.done())):
                    return None
            return arrival.result()
        finally:
            arrival.cancel()

    async def _refuse(self, refused: wire.RunTaskError) -> None:
        """The task that a refused message belongs to fails, if it runs."""
        task_id = refused.task_id
        await self._line.say(wire.task_failed(task_id, refused.code, refused.message))
        if (transport := self._hearing.get(task_id)) is not None:
            transport.lose(NORMAL)
        elif task_id in self._speaking:
            self._silence(task_id, NORMAL)
        if (work := self._work.get(task_id)) is not None:
            await asyncio.wait((work,))

    def _silence(self, task_id: str, code: int) -> None:
        """A task of synthesis is given up, or its client has left with this code."""
        self._speaking[task_id].reading.left(code)
        self._work[task_id].cancel()

    async def _hear(self, data: bytes) -> None:
        task_id = self._tasks.hearing
        if task_id is None:
            if self._door.decoded_rate_hz is not None:
                return  # a track is not part of the dialect: what it carries beside tasks is nobody's
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
                transport.finish()
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
            if self._over.done():
                raise self._over.result()
            work: Coroutine[Any, Any, None] = (
                await self._recognition(command) if command.kind == wire.RECOGNITION else await self._synthesis(command)
            )
        except Exception as error:
            self._tasks.ended(task_id)
            raise refusal(task_id, error) from error
        self._work[task_id] = group.create_task(self._carry(task_id, work), name=f"inference task {task_id}")

    async def _recognition(self, command: wire.RunTask) -> Coroutine[Any, Any, None]:
        model = listening_model(command.model)
        parameters = command.parameters
        if self._door.decoded_rate_hz is not None:  # whatever a client says of its audio, it comes on a track
            parameters = {**parameters, "format": "pcm", "sample_rate": self._door.decoded_rate_hz}
        opening, kind, rate_hz = settings_of(parameters, recognized_languages())
        admitted = await admit(self._caller, replace(self._door, takes_seat=True), model, self._address)
        admitted = admitted.opened_with(opening, listens_only=True)
        transport = RecognitionTransport(command.task_id, self._line.say, kind, rate_hz, self._unheard)
        self._hearing[command.task_id] = transport

        async def work() -> None:
            with admitted.seat:
                await self._line.say(wire.task_started(command.task_id))
                await admitted.run(transport)

        return work()

    async def _synthesis(self, command: wire.RunTask) -> Coroutine[Any, Any, None]:
        if not isinstance(self._line, SocketLine):
            raise InvalidParameter("Speech is synthesized over the WebSocket only: payload.task must be asr here.")
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
            refused = refusal(task_id, error)
            await self._line.say(wire.task_failed(task_id, refused.code, refused.message))
        finally:
            transport = self._hearing.get(task_id)
            self._has_failed = self._has_failed or (transport is not None and transport.has_failed)
            self._tasks.ended(task_id)
            self._hearing.pop(task_id, None)
            self._work.pop(task_id, None)
            self._idle_since = self._now()
            if (speech := self._speaking.pop(task_id, None)) is not None:
                await speech.reading.finish()  # the task's id may be used again meanwhile
