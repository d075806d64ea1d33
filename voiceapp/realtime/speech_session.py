"""A session that reads text aloud: one WebSocket, text in pieces in, responses of sound out, one after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from enum import Enum, auto
from typing import Any

from voiceapp.accounts.caller import Caller
from voiceapp.catalogue.cards import ModelCard
from voiceapp.drain import drain_event
from voiceapp.engines.providers import provider_of
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.errors import FloodError, InvalidParameter
from voiceapp.http.error_responses import error_response_of
from voiceapp.http.refusals import Receive, Send
from voiceapp.protocol import speech_events as wire
from voiceapp.protocol.speech_events import EventError, JsonObject
from voiceapp.realtime import close_codes
from voiceapp.realtime.inference.line import Line
from voiceapp.realtime.inference.reading_settings import ReadingSettings
from voiceapp.realtime.inference.speech import Speech
from voiceapp.realtime.readings import ReadingEnded, ReadingSession, admit_reading

logger = logging.getLogger(__name__)

IDLE_S = 60.0
"""A client that sends nothing for this long, while nothing is spoken, is gone."""
PAUSE_S = 1.0
"""With `server_commit`, text that does not go on for this long is complete."""
WAITING_TEXTS = 64
"""Pieces of text that were not spoken yet; the client's next one waits in its connection."""


class _Mark(Enum):
    COMMITTED = auto()
    """All text so far is one response."""
    CLEARED = auto()
    """Text that was not spoken yet is dropped."""


class SpeechSession:
    """One accepted connection."""

    def __init__(self, reading: ReadingSession, model: str) -> None:
        """`model` is what the client calls it."""
        self.seat = reading.seat
        self._reading = reading
        self._card = reading.card
        self._model = model
        self._id = reading.id
        self._settings = ReadingSettings()
        self._waiting = ""
        """Text that waits for a commit."""
        self._texts: asyncio.Queue[str | _Mark | None] = asyncio.Queue(WAITING_TEXTS)
        """What is to be spoken; None: nothing more follows."""
        self._speaking: asyncio.Task[None] | None = None
        """The response under way."""
        self._is_cancelled = False
        """By the client, and not told yet."""
        self._is_over = False
        """Nothing more follows."""

    @classmethod
    async def admitted(cls, caller: Caller, card: ModelCard, model: str, address: str) -> SpeechSession:
        """A session that may begin; whoever does not let it begin gives its `seat` back.

        Raises:
            AccessDenied: if the key may not be used for this, or its budget is used up.
            ServiceUnavailable: if the server is stopping.
            Throttled: if no seat is free.
        """
        return cls(await admit_reading(caller, card, model, address), model)

    async def run(self, receive: Receive, send: Send) -> None:
        """Carry the session to its end; nothing of it runs on."""
        self._receive, self._line = receive, Line(send)
        try:
            await self._reading.carry(self._converse())
        except ReadingEnded as ended:
            if ended.error is not None:
                with suppress(FloodError):
                    await self._refuse(ended.error, ended.reason)
        except FloodError as slow:
            logger.info("session %s: %s", self._id, slow.message)
        finally:
            try:
                await self._line.close(*self._reading.ending)
            finally:
                await self._reading.finish()

    async def _converse(self) -> tuple[int, str] | None:
        """Until the session is over: close code and reason, unless it was finished."""
        async with asyncio.TaskGroup() as group:
            await self._say(wire.event("session.created", session=self._shown()))
            speaker = group.create_task(self._speak(), name=f"{self._id} speaks")
            ending = await self._listen(speaker)
            speaker.cancel()
        return ending

    def _shown(self) -> JsonObject:
        how = self._settings.speech
        about = {"id": self._id, "object": "realtime.session", "model": self._model, "mode": self._settings.mode}
        voice = how.voice or provider_of(self._card).default_voice
        return {**about, "voice": voice, "response_format": how.format, "sample_rate": how.sample_rate_hz}

    # ── What the client says ─────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self, speaker: asyncio.Task[None]) -> tuple[int, str] | None:
        """Until everything is spoken, or the client leaves or is silent, or the server stops: close code and reason."""
        stop = asyncio.ensure_future(drain_event().wait_begun())
        arrival: asyncio.Future[Any] = asyncio.ensure_future(self._receive())
        try:
            while True:
                waits = (arrival, speaker, stop)
                done, _ = await asyncio.wait(waits, timeout=IDLE_S, return_when=asyncio.FIRST_COMPLETED)
                if speaker in done:
                    await self._say(wire.event("session.finished"))
                    return None
                if stop in done:
                    return close_codes.SERVER_STOPPING, "The server is stopping; connect again in a moment."
                if not done and not self._is_speaking:
                    return close_codes.NORMAL, f"Nothing came for {IDLE_S:g} seconds."
                if arrival in done:
                    if arrival.result()["type"] == "websocket.disconnect":
                        self._line.lost()
                        return close_codes.left_with(arrival.result().get("code"))
                    await self._read(arrival.result().get("text"))
                    arrival = asyncio.ensure_future(self._receive())
        finally:
            arrival.cancel()
            stop.cancel()

    async def _read(self, text: str | None) -> None:
        about = None
        try:
            if text is None:
                raise EventError("Binary messages are not read here: events are JSON text.", code="invalid_json")
            event = wire.read_speech_event(text)
            about = event.event_id
            await self._take(event)
        except EventError as refused:
            await self._refuse(refused.code, refused.message, refused.param, refused.event_id or about)
        except InvalidParameter as refused:
            await self._refuse("invalid_value", refused.message, refused.param, about)

    async def _refuse(self, code: str, message: str, param: str | None = None, about: str | None = None) -> None:
        error = {"type": "invalid_request_error", "code": code, "message": message, "param": param, "event_id": about}
        await self._say(wire.event("error", error=error))

    async def _take(self, event: wire.SpeechEvent) -> None:
        if event.kind == wire.SESSION_UPDATE:
            self._settings = self._settings.merged(event.session)
            await self._say(wire.event("session.updated", session=self._shown()))
        elif event.kind == wire.TEXT_APPEND:
            await self._append(event.text)
        elif event.kind == wire.TEXT_COMMIT:
            await self._say(wire.event("input_text_buffer.committed", item_id=wire.new_id("item")))
            await self._commit()
        elif event.kind == wire.TEXT_CLEAR:
            self._drop()
            await self._texts.put(_Mark.CLEARED)
            await self._say(wire.event("input_text_buffer.cleared"))
        elif event.kind == wire.RESPONSE_CANCEL:
            self._cancel()
        else:
            await self._commit()
            await self._texts.put(None)

    async def _append(self, text: str) -> None:
        if self._settings.mode == wire.SERVER_COMMIT:
            await self._texts.put(text)
        elif len(self._waiting) + len(text) > wire.MAX_TEXT:
            message = f"More than {wire.MAX_TEXT:,} characters wait for a commit."
            raise EventError(message, code="input_text_buffer_full", param="text")
        else:
            self._waiting += text

    async def _commit(self) -> None:
        if self._waiting:
            await self._texts.put(self._waiting)
            self._waiting = ""
        await self._texts.put(_Mark.COMMITTED)

    def _drop(self) -> None:
        self._waiting = ""
        while not self._texts.empty():
            self._texts.get_nowait()

    def _cancel(self) -> None:
        if self._speaking is None or self._speaking.done():
            raise EventError("There is no active response to cancel.", code="response_cancel_not_active")
        self._drop()
        self._is_cancelled = True
        self._speaking.cancel()

    # ── What it hears ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _is_speaking(self) -> bool:
        return self._speaking is not None and not self._speaking.done()

    async def _say(self, message: JsonObject) -> None:
        await self._line.say(message)

    async def _speak(self) -> None:
        while not self._is_over and (text := await self._texts.get()) is not None:
            if isinstance(text, str) and text.strip():
                self._speaking = asyncio.create_task(self._respond(text), name=f"{self._id} responds")
                await self._speaking

    async def _respond(self, text: str) -> None:
        how = self._settings.speech
        response = wire.SpeechResponse(how.voice or provider_of(self._card).default_voice)
        speech = Speech(provider_of(self._card), how)
        status, error = "cancelled", None
        for message in response.begun():
            await self._say(message)
        try:
            await self._sound(text, speech, response)
            status = "completed"
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            self._is_cancelled = False
        except FloodError:
            raise
        except Exception as failed:
            refusal = error_response_of(failed)
            if refusal.is_fault:
                logger.error("session %s: failed with an unexpected error", self._id, exc_info=failed)
            status, error = "failed", {"code": refusal.code, "message": refusal.message}
            await self._refuse(refusal.code, refusal.message)
        finally:
            self._reading.spoke(speech, status)
        for message in response.done(status, speech.characters, error=error):
            await self._say(message)

    async def _sound(self, text: str, speech: Speech, response: wire.SpeechResponse) -> None:
        async with self._reading.charge(response.id) as meter, aclosing(self._pieces(text)) as pieces:
            async for piece in pieces:
                async with aclosing(speech.say(piece, meter)) as sound:
                    async for audio in sound:
                        await self._say(response.sound(audio))
        if rest := speech.rest():
            await self._say(response.sound(rest))

    async def _pieces(self, text: str) -> AsyncGenerator[str, None]:
        """What one response speaks, sentence by sentence, as the text comes."""
        splitter = SentenceSplitter()
        item: str | _Mark | None = text
        while isinstance(item, str):
            for piece in splitter.feed(item):
                if piece.strip():
                    yield piece
            item = await self._next_text()
        self._is_over = item is None
        for piece in splitter.flush() if item is not _Mark.CLEARED else []:
            if piece.strip():
                yield piece

    async def _next_text(self) -> str | _Mark | None:
        try:
            async with asyncio.timeout(PAUSE_S if self._settings.mode == wire.SERVER_COMMIT else None):
                return await self._texts.get()
        except TimeoutError:
            return _Mark.COMMITTED
