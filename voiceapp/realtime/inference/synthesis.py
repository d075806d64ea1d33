"""A task of synthesis: text in pieces, spoken sentence by sentence, sound out in the format that was asked for."""

from __future__ import annotations

import asyncio
from typing import Any

from voiceapp.errors import InvalidParameter
from voiceapp.protocol import run_task as wire
from voiceapp.protocol.read_aloud import TASK, SpeechSettings, TextAppend, TextCommit
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.values import read_text
from voiceapp.realtime.inference.connection import SocketConnection
from voiceapp.realtime.inference.task import TaskTransport

USUAL = SpeechSettings(format="mp3", sample_rate_hz=22_050)


def settings_of(parameters: dict[str, Any]) -> dict[str, Any]:
    """A task's parameters as the settings of a session; unknown ones are ignored.

    Raises:
        InvalidParameter: if one is of the wrong type or out of range.
    """
    if str(parameters.get("text_type") or "PlainText") != "PlainText":
        raise InvalidParameter("SSML is not read here: text_type must be PlainText.", param="parameters.text_type")
    kind = read_text(parameters.get("format") or "default", "parameters.format", limit=16).lower()
    given = {
        **parameters,
        "format": None if kind == "default" else kind,
        "sample_rate": parameters.get("sample_rate") or None,
    }
    speech = USUAL.merged(given, "parameters.", format_name="format", rate_name="rate")
    return {"mode": TASK, "speech": speech}


class SynthesisTransport(TaskTransport):
    """A task of synthesis as the transport of its session, whose events are written as those of the task."""

    def __init__(self, command: wire.RunTask, connection: SocketConnection) -> None:
        super().__init__(command.task_id, connection.say)
        self._connection = connection
        self._takes_more = command.takes_more
        self._characters = 0
        self._events: asyncio.Queue[ev.ClientEvent | None] = asyncio.Queue()
        """Events of the client; None: it is gone."""
        self._append(command.text)
        if not command.takes_more:
            self._events.put_nowait(ev.SessionFinish())

    def take(self, command: wire.RunCommand) -> None:
        """A command that follows `run-task`."""
        if isinstance(command, wire.ContinueTask):
            self._append(command.text)
            if command.is_flush:
                self._events.put_nowait(TextCommit())
        else:
            self._events.put_nowait(ev.SessionFinish())

    def _append(self, text: str) -> None:
        if text:
            self._events.put_nowait(TextAppend(text=text))

    def lose(self, code: int) -> None:
        super().lose(code)
        self._events.put_nowait(None)

    async def receive(self) -> ev.ClientEvent:
        event = await self._events.get()
        self.check_lost()
        assert event is not None
        return event

    async def send(self, event: ev.ServerEvent) -> None:
        if self.is_over:
            return
        if isinstance(event, ev.AudioDelta):
            await self._connection.sound(event.audio)
        elif isinstance(event, ev.SessionCreated):
            await self.started()
        elif isinstance(event, ev.ResponseDone):
            self._characters = event.response["usage"]["characters"]
        elif isinstance(event, ev.SessionFinished):
            await self.finished({"characters": self._characters}, has_output=self._takes_more)
        elif isinstance(event, ev.ErrorEvent):
            await self.fail(event.code, event.message)
