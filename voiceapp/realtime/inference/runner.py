"""`/api-ws/v1/inference`, `/api/v1/webrtc/inference`: one connection, several tasks on it, each from `run-task` to its
end.

Each task is a session, of recognition (`recognition`) or of synthesis (`synthesis`). Whatever a client sends in the
wrong order fails the task that it names, with a code and a sentence.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from voiceapp.accounts.caller import Caller
from voiceapp.engines.models.providers import recognized_languages
from voiceapp.errors import FloodError, InvalidParameter
from voiceapp.protocol import run_task as wire
from voiceapp.realtime.admission import Admitted, admit
from voiceapp.realtime.close_codes import FLOOD, NORMAL
from voiceapp.realtime.doors import READ_ALOUD_SOCKET, Door
from voiceapp.realtime.handshake import listening_model
from voiceapp.realtime.inference import recognition, synthesis
from voiceapp.realtime.inference.connection import SocketConnection, TaskConnection
from voiceapp.realtime.inference.recognition import RecognitionTransport, Unheard
from voiceapp.realtime.inference.synthesis import SynthesisTransport
from voiceapp.realtime.inference.task import TaskTransport, refusal
from voiceapp.realtime.lifetime.end_conditions import connection_ended
from voiceapp.realtime.transports.interface import Disconnected

IDLE_S = 60.0
"""A connection without a task is closed after this."""


class TaskRunner:
    def __init__(self, caller: Caller, door: Door, address: str, connection: TaskConnection) -> None:
        self._caller = caller
        self._door = door
        self._address = address
        self._connection = connection
        self._over = asyncio.create_task(connection_ended(caller, door), name="inference connection: end")
        """Done when no further task may begin; those that run end by conditions of their own."""
        self._now = asyncio.get_running_loop().time
        self._idle_since = self._now()
        self._tasks = wire.RunTasks()
        self._unheard = Unheard()
        self._transports: dict[str, RecognitionTransport | SynthesisTransport] = {}
        self._work: dict[TaskTransport, asyncio.Task[None]] = {}
        """Also that of tasks which are over and still written down."""
        self._has_failed = False
        """A task has; the connection is closed when no other runs."""

    async def run(self) -> None:
        """Carry the connection to its end; nothing of it runs on."""
        code = NORMAL
        try:
            async with asyncio.TaskGroup() as group:
                code = await self._until_over(group)
                for transport in self._work:
                    transport.lose(code)
        finally:
            self._over.cancel()
            await self._connection.close(code, "")

    async def _until_over(self, group: asyncio.TaskGroup) -> int:
        """Listen until the client is gone, for which `_listen` may be waiting for room."""
        listening = asyncio.create_task(self._listen(group), name="inference connection: listening")
        gone = asyncio.create_task(self._connection.gone(), name="inference connection: gone")
        try:
            await asyncio.wait((listening, gone), return_when=asyncio.FIRST_COMPLETED)
            return listening.result() if listening.done() else gone.result()
        finally:
            listening.cancel()
            gone.cancel()
            await asyncio.gather(listening, gone, return_exceptions=True)

    async def _listen(self, group: asyncio.TaskGroup) -> int:
        """Listen until the client leaves, is silent without a task, or a task has failed and no other runs."""
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
                    await self._connection.say(wire.task_failed("", flood.code, flood.message))
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
        arrival = asyncio.ensure_future(self._connection.receive())
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
        await self._connection.say(wire.task_failed(refused.task_id, refused.code, refused.message))
        await self._give_up(refused.task_id)

    async def _give_up(self, task_id: str) -> None:
        if (transport := self._transports.get(task_id)) is not None:
            transport.lose(NORMAL)
            await asyncio.wait((self._work[transport],))

    async def _hear(self, data: bytes) -> None:
        task_id = self._tasks.hearing
        if task_id is None:
            if self._door.decoded_rate_hz is not None:
                return  # a track is not part of the dialect: audio outside a task is ignored
            raise wire.RunTaskError("Audio came before run-task, or after finish-task.")
        if isinstance(transport := self._transports.get(task_id), RecognitionTransport):
            await transport.hear(data)

    async def _take(self, command: wire.RunCommand, group: asyncio.TaskGroup) -> None:
        self._forget_ended()
        self._tasks.take(command)
        task_id = command.task_id
        if isinstance(command, wire.RunTask):
            await self._start(command, group)
        elif (transport := self._transports.get(task_id)) is not None:
            is_cancelled = isinstance(command, wire.FinishTask) and command.is_cancelled
            if is_cancelled and isinstance(transport, SynthesisTransport):
                await self._give_up(task_id)
                await self._connection.say(wire.task_finished(task_id, {}))
            else:
                transport.take(command)

    async def _start(self, command: wire.RunTask, group: asyncio.TaskGroup) -> None:
        task_id = command.task_id
        try:
            if self._over.done():
                raise self._over.result()
            begin = self._recognition if command.kind == wire.RECOGNITION else self._synthesis
            admitted, transport = await begin(command)
        except Exception as error:
            self._tasks.ended(task_id)
            raise refusal(task_id, error) from error
        self._transports[task_id] = transport
        work = self._work[transport] = group.create_task(
            self._carry(admitted, transport), name=f"inference task {task_id}"
        )
        work.add_done_callback(lambda _: admitted.seat.release())  # also of one that is cancelled before it begins

    async def _recognition(self, command: wire.RunTask) -> tuple[Admitted, RecognitionTransport]:
        parameters = command.parameters
        if self._door.decoded_rate_hz is not None:  # whatever a client says of its audio, it comes on a track
            parameters = {**parameters, "format": "pcm", "sample_rate": self._door.decoded_rate_hz}
        opening, kind, rate_hz = recognition.settings_of(parameters, recognized_languages())
        door = replace(self._door, takes_seat=True)
        admitted = await admit(self._caller, door, listening_model(command.model), self._address)
        transport = RecognitionTransport(command.task_id, self._connection.say, kind, rate_hz, self._unheard)
        return admitted.opened_with(opening, listens_only=True), transport

    async def _synthesis(self, command: wire.RunTask) -> tuple[Admitted, SynthesisTransport]:
        if not isinstance(self._connection, SocketConnection):
            raise InvalidParameter("Speech is synthesized over the WebSocket only: payload.task must be asr here.")
        opening = synthesis.settings_of(command.parameters)
        admitted = await admit(self._caller, READ_ALOUD_SOCKET, command.model, self._address)
        transport = SynthesisTransport(command, self._connection)
        return admitted.opened_with(opening, listens_only=False), transport

    async def _carry(self, admitted: Admitted, transport: RecognitionTransport | SynthesisTransport) -> None:
        try:
            await admitted.run(transport)
        finally:
            self._has_failed = self._has_failed or transport.has_failed
            del self._work[transport]
            self._forget_ended()
            self._idle_since = self._now()

    def _forget_ended(self) -> None:
        for task_id, transport in tuple(self._transports.items()):
            if transport.is_over:
                self._tasks.ended(task_id)
                del self._transports[task_id]
