"""A session that reads text aloud: one WebSocket, text in pieces in, responses of sound out, one after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from enum import Enum, auto
from typing import Any

from voiceapp.accounts.caller import Caller
from voiceapp.accounts.charges import charge, require_model
from voiceapp.accounts.seats import seats
from voiceapp.catalogue.cards import ModelCard
from voiceapp.drain import drain_event
from voiceapp.engines.providers import provider_of
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.errors import FloodError, InvalidParameter, ServiceUnavailable
from voiceapp.http.error_responses import error_response_of
from voiceapp.http.refusals import Receive, Send
from voiceapp.protocol import speech_events as wire
from voiceapp.protocol.speech_events import EventError, JsonObject
from voiceapp.realtime import close_codes
from voiceapp.realtime.inference.line import Line
from voiceapp.realtime.inference.reading_settings import ReadingSettings
from voiceapp.realtime.inference.speech import Speech

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

    def __init__(self, caller: Caller, card: ModelCard, model: str, address: str) -> None:
        """`model` is what the client calls it."""
        self._caller = caller
        self._card = card
        self._model = model
        self.seat = seats().seat(caller, address)
        self._id = wire.new_id("sess")
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

    async def admit(self) -> None:
        """Take `seat`, which the door gives back.

        Raises:
            AccessDenied: if the key may not be used for this.
            ServiceUnavailable: if the server is stopping.
            Throttled: if no seat is free.
        """
        self._caller.require("realtime")
        require_model(self._caller, self._card.name, "tts")
        if drain_event().begun:
            raise ServiceUnavailable("The server is stopping; connect again in a moment.")
        await self.seat.take()

    async def run(self, receive: Receive, send: Send) -> None:
        """Carry the session to its end; nothing of it runs on."""
        self._receive, self._line = receive, Line(send)
        code, reason = close_codes.NORMAL, ""
        try:
            async with asyncio.timeout(self.seat.lifetime_s), asyncio.TaskGroup() as group:
                await self._say(wire.event("session.created", session=self._shown()))
                speaker = group.create_task(self._speak(), name=f"{self._id} speaks")
                code, reason = await self._listen(speaker)
                speaker.cancel()
        except* TimeoutError:
            code, reason = close_codes.LIFETIME_OVER, "The session has reached its longest duration."
        except* FloodError:
            code, reason = close_codes.FLOOD, "The connection is too slow for this session."
        finally:
            await self._line.close(code, reason)

    def _shown(self) -> JsonObject:
        how = self._settings.speech
        about = {"id": self._id, "object": "realtime.session", "model": self._model, "mode": self._settings.mode}
        voice = how.voice or provider_of(self._card).default_voice
        return {**about, "voice": voice, "response_format": how.format, "sample_rate": how.sample_rate_hz}

    # ── What the client says ─────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self, speaker: asyncio.Task[None]) -> tuple[int, str]:
        """Until everything is spoken, the client leaves or is silent, or the server stops: close code and reason."""
        stop = asyncio.ensure_future(drain_event().wait_begun())
        arrival: asyncio.Future[Any] = asyncio.ensure_future(self._receive())
        try:
            while True:
                waits = (arrival, speaker, stop)
                done, _ = await asyncio.wait(waits, timeout=IDLE_S, return_when=asyncio.FIRST_COMPLETED)
                if speaker in done:
                    await self._say(wire.event("session.finished"))
                    return close_codes.NORMAL, ""
                if stop in done:
                    return close_codes.SERVER_STOPPING, "The server is stopping; connect again in a moment."
                if not done and not self._is_speaking:
                    return close_codes.NORMAL, f"Nothing came for {IDLE_S:g} seconds."
                if arrival in done:
                    if arrival.result()["type"] == "websocket.disconnect":
                        self._line.lost()
                        return close_codes.NORMAL, ""
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
        status, error = "completed", None
        for message in response.begun():
            await self._say(message)
        try:
            await self._sound(text, speech, response)
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            self._is_cancelled, status = False, "cancelled"
        except FloodError:
            raise
        except Exception as failed:
            refusal = error_response_of(failed)
            if refusal.is_fault:
                logger.error("session %s: failed with an unexpected error", self._id, exc_info=failed)
            status, error = "failed", {"code": refusal.code, "message": refusal.message}
            await self._refuse(refusal.code, refusal.message)
        for message in response.done(status, speech.characters, error=error):
            await self._say(message)

    async def _sound(self, text: str, speech: Speech, response: wire.SpeechResponse) -> None:
        reading = charge(self._caller, operation="speech", model=self._card.name, family="tts", request_id=response.id)
        async with reading as meter, aclosing(self._pieces(text)) as pieces:
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
