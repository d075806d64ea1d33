"""A task of synthesis: text in pieces, spoken sentence by sentence, sound out in the format that was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from voiceapp.accounts.caller import Caller
from voiceapp.accounts.charges import Charge
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.providers import provider_of
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.errors import FloodError, InvalidParameter
from voiceapp.formats import identifier
from voiceapp.protocol import run_task as wire
from voiceapp.protocol.values import read_integer, read_number, read_text
from voiceapp.realtime.inference.line import SILENCE_S, SILENT, TIMED_OUT, Line
from voiceapp.realtime.inference.speech import FORMATS, FULL_VOLUME, Speech, SpeechSettings, check_rate
from voiceapp.realtime.readings import ReadingSession, admit_reading

USUAL_RATE_HZ = 22_050
USUAL_FORMAT = "mp3"
WAITING_TEXTS = 64
"""Pieces of text that were not spoken yet; the client's next one waits in its connection."""


def read_settings(parameters: dict[str, Any]) -> SpeechSettings:
    """From a task's parameters; what is unknown among them is ignored.

    Raises:
        InvalidParameter: if one is of the wrong type or out of range.
    """
    given = read_text(parameters.get("format") or USUAL_FORMAT, "parameters.format", limit=16).lower()
    kind = USUAL_FORMAT if given == "default" else given
    if kind not in FORMATS:
        raise InvalidParameter(f"parameters.format must be one of {', '.join(FORMATS)}.", param="parameters.format")
    if str(parameters.get("text_type") or "PlainText") != "PlainText":
        raise InvalidParameter("SSML is not read here: text_type must be PlainText.", param="parameters.text_type")
    volume = parameters.get("volume")
    rate = parameters.get("rate")
    settings = SpeechSettings(
        voice=read_text(parameters.get("voice") or "", "parameters.voice", limit=128),
        format=kind,
        sample_rate_hz=read_integer(
            parameters.get("sample_rate") or USUAL_RATE_HZ, "parameters.sample_rate", 8_000, 48_000
        ),
        rate=1.0 if rate is None else read_number(rate, "parameters.rate", 0.5, 2.0),
        gain=1.0 if volume is None else read_number(volume, "parameters.volume", 0, 100) / FULL_VOLUME,
    )
    return check_rate(settings, "parameters.sample_rate")


class SynthesisTask:
    """One task. `run` lasts as long as it does."""

    @classmethod
    async def admitted(cls, command: wire.RunTask, caller: Caller, line: Line, address: str) -> SynthesisTask:
        """The task, if it may begin; `run` gives its seat back.

        Raises:
            InvalidParameter: if its parameters cannot be used.
            ModelNotFound: if the model does not exist.
            AccessDenied: if the key may not be used for it, or its budget is used up.
            ServiceUnavailable: if the server is stopping.
            Throttled: if no seat is free.
        """
        card = catalogue().get(command.model, "tts")
        speech = Speech(provider_of(card), read_settings(command.parameters))
        return cls(command, speech, line, await admit_reading(caller, card, command.model, address))

    def __init__(self, command: wire.RunTask, speech: Speech, line: Line, reading: ReadingSession) -> None:
        self.reading = reading
        self._task_id = command.task_id
        self._takes_more = command.takes_more
        self._line = line
        self._speech = speech
        self._splitter = SentenceSplitter()
        self._texts: asyncio.Queue[tuple[str, bool] | None] = asyncio.Queue(WAITING_TEXTS)
        """Text, and whether all so far is to be spoken now; None: nothing more follows."""
        self._is_over = False

    async def write(self, text: str, *, is_flush: bool = False) -> None:
        """Take more text; waits while much was not spoken yet."""
        if not self._is_over:
            await self._texts.put((text, is_flush))

    async def finish(self) -> None:
        """Nothing more follows."""
        if not self._is_over:
            await self._texts.put(None)

    async def run(self) -> None:
        """Speak until the text has ended.

        Raises:
            AccessDenied: if the key's budget is used up.
            Throttled: if a rate or quota is used up.
            EngineError: if the engine fails.
            FloodError: if the client reads too slowly, or sends nothing.
            ReadingEnded: if the task may not go on, as when its key was revoked.
        """
        try:
            await self.reading.carry(self._read())
        finally:
            self._is_over = True
            while not self._texts.empty():
                self._texts.get_nowait()  # whoever waits to put one goes on

    async def _read(self) -> None:
        status = "failed"
        try:
            await self._speak_all()
            status = "completed"
        except asyncio.CancelledError:
            status = "cancelled"
            raise
        finally:
            self.reading.spoke(self._speech, status)
        usage = {"characters": self._speech.characters}
        await self._line.say(wire.task_finished(self._task_id, usage, has_output=self._takes_more))

    async def _speak_all(self) -> None:
        async with self.reading.charge(identifier("speech")) as meter:
            await self._line.say(wire.task_started(self._task_id))
            async with aclosing(self._pieces()) as pieces:
                async for piece in pieces:
                    await self._speak(piece, meter)
            if rest := self._speech.rest():
                await self._line.sound(rest)

    async def _pieces(self) -> AsyncGenerator[str, None]:
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    arrival = await self._texts.get()
            except TimeoutError:
                raise FloodError(SILENT, code=TIMED_OUT) from None
            text, is_flush = arrival or ("", True)
            for piece in self._splitter.feed(text) + (self._splitter.flush() if is_flush else []):
                if piece.strip():
                    yield piece
            if arrival is None:
                return

    async def _speak(self, text: str, meter: Charge) -> None:
        async with aclosing(self._speech.say(text, meter)) as sound:
            async for written in sound:
                await self._line.sound(written)
