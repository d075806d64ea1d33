"""A realtime model that reads text aloud: text in pieces in, responses of sound out, one after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from enum import Enum, auto
from typing import Any

import numpy as np

from voiceapp.engines.interfaces import Call, Provider, SpeechMeter, Synthesizer, Voice
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.engines.sound.sound_files import SoundWriter
from voiceapp.errors import ClientSilent, InvalidParameter
from voiceapp.formats import identifier
from voiceapp.http.error_responses import error_response_of
from voiceapp.protocol import read_aloud as wire
from voiceapp.protocol.read_aloud import COMMIT, MAX_TEXT, SERVER_COMMIT, TASK, ReadAloudResponse, ReadAloudSettings
from voiceapp.protocol.speaking.stock_replies import StockReply
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import TurnEnded

logger = logging.getLogger(__name__)

IDLE_S = {SERVER_COMMIT: 60.0, COMMIT: 60.0, TASK: 23.0}
"""A client that sends nothing for this long, while nothing is spoken, is gone; that of tasks is the vendor's."""
PAUSE_S = 1.0
"""Pause after which text is complete with `server_commit`."""
MAX_UNSPOKEN = 200_000
"""Characters that were not spoken yet, some hours of speech."""
MAX_AHEAD = 4
"""Pieces of sound that wait for the client to take them."""
KEPT_TEXT = 20_000
"""Characters of one response that its record keeps."""


class _Mark(Enum):
    COMMITTED = auto()
    """All text so far is to be spoken."""
    CLEARED = auto()
    """Text that was not spoken yet is dropped."""
    FINISHED = auto()
    """Nothing more follows."""


class Speech:
    """One file or stream of sound, counted as it is spoken."""

    def __init__(self, engine: Synthesizer, settings: wire.SpeechSettings) -> None:
        self._engine = engine
        self._settings = settings
        self._writer = SoundWriter(settings.format, settings.sample_rate_hz)
        self._has_sounded = False
        self.characters = 0
        """Spoken so far."""
        self.text = ""
        """The beginning of what was spoken."""
        self._samples = 0

    async def say(self, text: str, meter: SpeechMeter) -> AsyncGenerator[bytes, None]:
        """The sound of more text, as it is made.

        Raises:
            AccessDenied: if the caller's budget is used up.
            Throttled: if a rate or quota is used up.
            EngineError: if the engine fails.
        """
        await meter.reserve(characters=self.characters + len(text))
        self.characters += len(text)
        self.text = (self.text + text)[:KEPT_TEXT]
        meter.used(characters=self.characters)
        how = self._settings
        async with aclosing(
            self._engine.speak(text, voice=how.voice, sample_rate_hz=how.sample_rate_hz, rate=how.rate)
        ) as sound:
            async for pcm in sound:
                self._samples += len(pcm) // 2
                if written := self._writer.feed(self._loud(pcm)):
                    self._has_sounded = True
                    yield written

    @property
    def audio_ms(self) -> int:
        """Length of what was spoken."""
        return self._samples * 1000 // self._settings.sample_rate_hz

    def rest(self) -> bytes:
        """Return what a format holds back until the end."""
        return self._writer.finish() if self._has_sounded else b""

    def _loud(self, pcm: bytes) -> bytes:
        if self._settings.gain == 1.0:
            return pcm
        samples = np.frombuffer(pcm, dtype="<i2").astype(np.float32) * self._settings.gain
        return bytes(np.clip(samples, -32768, 32767).astype("<i2").tobytes())


class ReadAloudModel(Provider):
    """A `RealtimeModel` made of a model of synthesis."""

    def __init__(self, synthesizer: Any) -> None:
        """`synthesizer` is a `Synthesizer` and a `Provider`."""
        self._synthesizer = synthesizer

    @property
    def voices(self) -> Sequence[Voice]:
        return list(self._synthesizer.voices)

    @property
    def default_voice(self) -> str:
        return str(self._synthesizer.default_voice)

    def check(self) -> None:
        self._synthesizer.check()

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> ReadAloudStream:
        return ReadAloudStream(call, tasks, self._synthesizer)


class ReadAloudStream:
    """One session. All methods belong to the event loop's thread."""

    def __init__(self, call: Call, tasks: asyncio.TaskGroup, synthesizer: Synthesizer) -> None:
        assert call.charge is not None
        self._call = call
        self._charge = call.charge
        self._tasks = tasks
        self._synthesizer = synthesizer
        self._settings = ReadAloudSettings(**call.opening)
        self._uncommitted = ""
        self._texts: asyncio.Queue[str | _Mark] = asyncio.Queue()
        self._unspoken = 0
        """Characters in the queue."""
        self._now = asyncio.get_running_loop().time
        self._came_at = self._now()
        """Time of the last event of the client."""
        self._events: asyncio.Queue[ev.ServerEvent | TurnEnded | None] = asyncio.Queue()
        """None: the session has finished."""
        self._changed = asyncio.Event()
        """An event was taken, or a response has ended."""
        self._response: asyncio.Task[None] | None = None
        self._is_cancelled = False
        """The client has cancelled the response, and was not told yet."""
        self._is_finished = False
        self._turns = 0
        self._say(ev.SessionCreated(session=self._shown()))
        tasks.create_task(self._speak(), name=f"session {call.session_id}: speaking")

    async def events(self) -> AsyncGenerator[ev.ServerEvent | TurnEnded, None]:
        while (event := await self._events.get()) is not None:
            self._changed.set()
            yield event

    def notify(self, words: str | StockReply) -> bool:
        return False

    async def wait_idle(self) -> None:
        while self._response is not None or not self._events.empty():
            self._changed.clear()
            await self._changed.wait()

    def close(self) -> Sequence[TurnEnded]:
        rest = [self._events.get_nowait() for _ in range(self._events.qsize())]
        return [event for event in rest if isinstance(event, TurnEnded)]

    def _say(self, *events: ev.ServerEvent) -> None:
        for event in events:
            self._events.put_nowait(replace(event, event_id=identifier("event")))

    def _shown(self) -> dict[str, Any]:
        how = self._settings.speech
        about = {"id": self._call.session_id, "object": "realtime.session", "model": self._call.model}
        voice = how.voice or self._synthesizer.default_voice
        sound = {"voice": voice, "response_format": how.format, "sample_rate": how.sample_rate_hz}
        return {**about, "mode": self._settings.mode, **sound}

    # ── From the client ──────────────────────────────────────────────────────────────────────────────────────────────

    async def receive(self, event: ev.ClientEvent) -> None:
        self._came_at = self._now()
        if isinstance(event, ev.SessionUpdate):
            self._update(event)
        elif isinstance(event, wire.TextAppend):
            self._append(event)
        elif isinstance(event, wire.TextCommit):
            self._commit()
            self._say(wire.TextCommitted(item_id=identifier("item")))
        elif isinstance(event, wire.TextClear):
            self._drop()
            self._put(_Mark.CLEARED)
            self._say(wire.TextCleared())
        elif isinstance(event, ev.ResponseCancel):
            self._cancel(event)
        elif isinstance(event, ev.SessionFinish):
            self._commit()
            self._put(_Mark.FINISHED)

    def _update(self, event: ev.SessionUpdate) -> None:
        try:
            self._settings = self._settings.merged(event.session)
        except InvalidParameter as refused:
            raise ev.EventError(
                refused.message, code="invalid_value", param=refused.param, event_id=event.event_id
            ) from None
        self._say(ev.SessionUpdated(session=self._shown()))

    def _append(self, event: wire.TextAppend) -> None:
        waits = self._settings.mode == COMMIT
        if waits and len(self._uncommitted) + len(event.text) > MAX_TEXT:
            raise _full(f"More than {MAX_TEXT:,} characters wait for a commit.", event)
        if self._unspoken + len(event.text) > MAX_UNSPOKEN:
            raise _full(f"More than {MAX_UNSPOKEN:,} characters wait to be spoken.", event)
        if waits:
            self._uncommitted += event.text
        else:
            self._put(event.text)

    def _commit(self) -> None:
        if self._uncommitted:
            self._put(self._uncommitted)
            self._uncommitted = ""
        self._put(_Mark.COMMITTED)

    def _put(self, item: str | _Mark) -> None:
        self._unspoken += len(item) if isinstance(item, str) else 0
        self._texts.put_nowait(item)

    def _drop(self) -> None:
        """Drop text that was not spoken yet; the end of the session stays."""
        self._uncommitted = ""
        dropped = [self._texts.get_nowait() for _ in range(self._texts.qsize())]
        self._unspoken = 0
        if _Mark.FINISHED in dropped:
            self._put(_Mark.FINISHED)

    def _cancel(self, event: ev.ResponseCancel) -> None:
        if self._response is None:
            message = "There is no active response to cancel."
            raise ev.EventError(message, code="response_cancel_not_active", event_id=event.event_id)
        self._drop()
        self._is_cancelled = True
        self._response.cancel()

    # ── To the client ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _speak(self) -> None:
        is_task = self._settings.mode == TASK
        while not self._is_finished:
            item = "" if is_task else await self._next_text()
            if is_task or (isinstance(item, str) and item.strip()):
                assert isinstance(item, str)
                response = self._respond(item)
                self._response = self._tasks.create_task(response, name=f"session {self._call.session_id}: response")
                await asyncio.wait((self._response,))
                self._response = None
                self._is_finished = self._is_finished or is_task
                self._changed.set()
            elif item is _Mark.FINISHED:
                self._is_finished = True
        self._say(ev.SessionFinished())
        self._events.put_nowait(None)

    async def _respond(self, text: str) -> None:
        response = ReadAloudResponse(self._settings.speech.voice or self._synthesizer.default_voice)
        speech = Speech(self._synthesizer, self._settings.speech)
        status, error = "cancelled", None
        self._say(*response.begun())
        try:
            await self._sound(text, speech, response)
            status = "completed"
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            self._is_cancelled = False
        except Exception as failed:
            status = "failed"
            if self._settings.mode == TASK:
                raise
            refusal = error_response_of(failed)
            if refusal.is_fault:
                logger.error("session %s: failed with an unexpected error", self._call.session_id, exc_info=failed)
            error = {"code": refusal.code, "message": refusal.message}
            self._say(ev.ErrorEvent(code=refusal.code, message=refusal.message))
        finally:
            if speech.characters:
                self._turns += 1
                self._events.put_nowait(_turn(self._turns, speech, status))
        self._say(*response.done(status, speech.characters, error=error))

    async def _sound(self, text: str, speech: Speech, response: ReadAloudResponse) -> None:
        async with self._charge(response.id) as meter, aclosing(self._pieces(text)) as pieces:
            async for piece in pieces:
                async with aclosing(speech.say(piece, meter)) as sound:
                    async for audio in sound:
                        await self._send(response.sound(audio))
        if rest := speech.rest():
            await self._send(response.sound(rest))

    async def _send(self, event: ev.AudioDelta) -> None:
        self._say(event)
        while self._events.qsize() > MAX_AHEAD:
            self._changed.clear()
            await self._changed.wait()

    async def _pieces(self, text: str) -> AsyncGenerator[str, None]:
        """The text of one response, sentence by sentence, as it comes."""
        splitter = SentenceSplitter()
        item: str | _Mark = text
        while True:
            self._is_finished = item is _Mark.FINISHED
            found = splitter.feed(item) if isinstance(item, str) else []
            if item is _Mark.COMMITTED or item is _Mark.FINISHED:
                found += splitter.flush()
            for piece in found:
                if piece.strip():
                    yield piece
            if self._is_finished or (isinstance(item, _Mark) and self._settings.mode != TASK):
                return
            item = await self._next_text(PAUSE_S if self._settings.mode == SERVER_COMMIT else None)

    async def _next_text(self, pause_s: float | None = None) -> str | _Mark:
        """Return what comes next; without anything for `pause_s`, that the text is complete.

        Raises:
            ClientSilent: if nothing comes for too long.
        """
        idle_s = IDLE_S[self._settings.mode]
        waits_from = self._now()
        while True:
            began = max(waits_from, self._came_at)
            try:
                async with asyncio.timeout_at(began + idle_s if pause_s is None else waits_from + pause_s):
                    item = await self._texts.get()
            except TimeoutError:
                if pause_s is not None:
                    return _Mark.COMMITTED
                if self._came_at <= began:
                    raise ClientSilent(idle_s) from None
            else:
                self._unspoken -= len(item) if isinstance(item, str) else 0
                return item


def _full(message: str, event: ev.ClientEvent) -> ev.EventError:
    return ev.EventError(message, code="input_text_buffer_full", param="text", event_id=event.event_id)


def _turn(ordinal: int, speech: Speech, status: str) -> TurnEnded:
    return TurnEnded(
        ordinal=ordinal,
        status=status,
        user_text="",
        assistant_text=speech.text,
        heard_text=speech.text,
        is_interrupted=False,
        input_audio_ms=0,
        output_audio_ms=speech.audio_ms,
        input_tokens=0,
        output_tokens=0,
        is_spoken=False,
        end_of_turn_ms=None,
        recognition_ms=None,
        first_token_ms=None,
        first_audio_ms=None,
        is_charged=True,
    )
