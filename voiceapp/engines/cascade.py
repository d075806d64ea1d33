"""A realtime model made of four engines: voice detection, recognition, chat and synthesis around one `Session`.

The session decides; here its decisions are carried out: audio is brought to frames, work is started and abandoned,
results are handed back, timers fire, and events go out in order.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np
from django.conf import settings

from voiceapp.engines.catalogue import catalogue
from voiceapp.engines.embedded import vad, weights
from voiceapp.engines.interfaces import (
    Call,
    ChatModel,
    ChatRequest,
    Recognizer,
    Samples,
    Synthesizer,
    TurnPredictor,
    Voice,
    VoiceDetector,
)
from voiceapp.engines.messages import messages, speakable
from voiceapp.engines.resampling import InputConverter
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.errors import EngineError, EngineUnavailable, FloodError, InvalidParameter
from voiceapp.protocol import events as ev
from voiceapp.protocol.audio import AudioFormat, Framer, Meter
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.session import Session
from voiceapp.protocol.work import Abandon, JudgeTurn, Recognize, RecognizeItem, Respond, TurnEnded, Work

logger = logging.getLogger(__name__)

FRAMES_PER_SLICE = 16
"""Frames judged before others on the event loop get their turn: half a second of audio, under 2 ms."""
SENTENCE_PAUSE_MS = 200
"""Between sentences that are synthesized one by one; without it they run together."""
SENTENCES_AHEAD = 4
"""How far writing may run ahead of speaking."""


class CascadeModel:
    """A `RealtimeModel`; the engines behind it are shared by all conversations."""

    def __init__(self) -> None:
        models = catalogue()
        self._recognizer: Recognizer = models.provider(models.default("asr"))
        self._turns: TurnPredictor = models.provider(models.default("turn"))
        self._chat: ChatModel = models.provider(models.default("chat"))
        self._synthesizer: Synthesizer = models.provider(models.default("tts"))

    @property
    def voices(self) -> Sequence[Voice]:
        return self._synthesizer.voices

    def check(self) -> None:
        """Raises EngineUnavailable when the weights are missing."""
        if names := weights.missing():
            raise EngineUnavailable(f"Voice models missing on this server: {', '.join(names)}.")

    async def warm(self) -> None:
        """Load voice detection, which runs on the event loop and must not load there."""
        await vad.warm()

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> CascadeStream:
        """See `RealtimeModel`."""
        return CascadeStream(
            call,
            tasks,
            detector=vad.detector(),
            turns=self._turns,
            recognizer=self._recognizer,
            chat=self._chat,
            synthesizer=self._synthesizer,
        )


class CascadeStream:
    """One conversation. All methods belong to the event loop's thread."""

    def __init__(
        self,
        call: Call,
        tasks: asyncio.TaskGroup,
        *,
        detector: VoiceDetector,
        turns: TurnPredictor,
        recognizer: Recognizer,
        chat: ChatModel,
        synthesizer: Synthesizer,
    ) -> None:
        self._call = call
        self._tasks = tasks
        self._detector = detector
        self._turns = turns
        self._recognizer = recognizer
        self._chat = chat
        self._synthesizer = synthesizer
        self._now = asyncio.get_running_loop().time
        self._started_at = time.time()
        self._speech_rate = 1.0
        self._session = Session(
            session_id=call.session_id,
            config=SessionConfig(
                model=call.model,
                voice=settings.DEFAULT_VOICE,
                input_format=AudioFormat("pcm16", call.input_rate_hz),
                output_format=AudioFormat("pcm16", 24_000),
                transcription_model=catalogue().default("asr").name,
            ),
        )
        self._converter = InputConverter(self._session.config.input_format)
        self._framer = Framer()
        self._meter = Meter(rate_per_s=2 * 1000)
        self._running: dict[str, set[asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._room = asyncio.Event()
        self._session.open(self._now())

    async def receive(self, event: ev.ClientEvent) -> None:
        """See `RealtimeStream`."""
        if isinstance(event, ev.AudioAppend):
            await self._hear(event)
            return
        if isinstance(event, ev.AudioCommit | ev.SessionFinish):
            self._judge(self._framer.flush())
        elif isinstance(event, ev.AudioClear):
            self._framer = Framer()
        before = self._session.config.input_format
        self._session.receive(event, self._now())
        if self._session.config.input_format != before:
            self._converter = InputConverter(self._session.config.input_format)
        self._follow()

    async def events(self) -> AsyncGenerator[ev.ServerEvent | TurnEnded, None]:
        """See `RealtimeStream`."""
        session = self._session
        while True:
            self._changed.clear()
            for event in session.events_to_send():
                yield event
            for record in session.records():
                yield record
            if self._changed.is_set():  # while these were sent, more came
                continue
            if session.is_finished:
                self._idle.set()
                return
            if not self._is_busy:
                self._idle.set()
            try:
                async with asyncio.timeout_at(session.next_timer()):
                    await self._changed.wait()
            except TimeoutError:
                session.tick(self._now())
                self._follow()

    async def wait_idle(self) -> None:
        """See `RealtimeStream`."""
        self._idle.clear()
        self._changed.set()  # `events` looks again: only there is it known that all was taken
        await self._idle.wait()

    @property
    def _is_busy(self) -> bool:
        """An answer is under way, or something that may lead to one."""
        response = self._session.response
        return bool(self._running) or (response is not None and response.is_live)

    def close(self) -> Sequence[TurnEnded]:
        """See `RealtimeStream`."""
        for running in self._running.values():
            for task in running:
                task.cancel()
        self._session.close(self._now())
        return self._session.records()

    # ── Listening ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _hear(self, event: ev.AudioAppend) -> None:
        try:
            samples = self._converter.convert(event.audio)
        except InvalidParameter as refused:
            self._session.refuse(refused, event.event_id)
            self._changed.set()
            return
        if not self._meter.accept(len(samples) / 16, self._now()):
            raise FloodError("Audio arrives faster than twice real time.", code="audio_too_fast", param="audio")
        frames = self._framer.push(samples)
        for start in range(0, len(frames), FRAMES_PER_SLICE):
            if start:
                await asyncio.sleep(0)
            self._judge(frames[start : start + FRAMES_PER_SLICE])
        self._follow()

    def _judge(self, frames: Sequence[Samples]) -> None:
        for frame in frames:
            self._session.hear(frame, self._detector.probability(frame), self._now())

    # ── Carrying out ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _follow(self) -> None:
        """Start what the session asks for, and let the events go out."""
        for work in self._session.work_to_start():
            if isinstance(work, Abandon):
                self._abandon(work)
            else:
                self._start(work)
        if self._session.has_room_for_audio:
            self._room.set()
        else:
            self._room.clear()
        self._changed.set()

    def _start(self, work: Work) -> None:
        if isinstance(work, Respond):
            self._spawn(work.response_id, self._respond(work))
        elif isinstance(work, Recognize):
            self._spawn(work.item_id, self._recognize(work))
        elif isinstance(work, JudgeTurn):
            self._spawn(work.item_id, self._judge_turn(work))
        elif isinstance(work, RecognizeItem):
            self._spawn(work.item_id, self._recognize_item(work))

    def _spawn(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(work)
        self._running.setdefault(key, set()).add(task)
        task.add_done_callback(lambda done: self._forget(key, done))

    def _forget(self, key: str, task: asyncio.Task[None]) -> None:
        running = self._running.get(key)
        if running is not None:
            running.discard(task)
            if not running:
                del self._running[key]
        self._changed.set()

    def _abandon(self, work: Abandon) -> None:
        for key in (work.item_id, work.response_id):
            for task in tuple(self._running.get(key or "", ())):
                task.cancel()

    async def _judge_turn(self, work: JudgeTurn) -> None:
        try:
            probability = await self._turns.end_probability(work.audio)
        except EngineError as error:  # the cap on the silence ends the turn then
            logger.debug("turn model: %s", error.message)
            probability = 0.0
        self._session.turn_judged(work.item_id, work.version, probability, self._now())
        self._follow()

    async def _recognize(self, work: Recognize) -> None:
        try:
            recognition = await self._recognizer.recognize(
                work.audio, language=work.language, urgent=not work.is_partial
            )
        except EngineError as error:
            self._session.recognition_failed(work, error.code, error.message, self._now())
        else:
            self._session.recognized(work, recognition.text, self._now())
        self._follow()

    async def _recognize_item(self, work: RecognizeItem) -> None:
        words = ""
        try:
            audio = base64.b64decode(work.audio, validate=True)
            converter = InputConverter(self._session.config.input_format)
            samples = np.concatenate((converter.convert(audio), converter.flush()))
            words = (await self._recognizer.recognize(samples)).text
        except (binascii.Error, ValueError):
            self._session.refuse(InvalidParameter("The item's audio is not valid base64.", param="item.content"))
        except InvalidParameter as refused:
            self._session.refuse(refused)
        except EngineError as error:
            self._session.item_recognition_failed(work.item_id, error.code, error.message, self._now())
        self._session.item_recognized(work.item_id, words, self._now())
        self._follow()

    # ── Answering ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _respond(self, work: Respond) -> None:
        """Write and speak one answer; every way out but cancellation ends it for the session."""
        sentences: asyncio.Queue[str | None] = asyncio.Queue(SENTENCES_AHEAD)
        finish_reason = "stop"
        try:
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._write(work, sentences))
                if work.config.speaks:
                    group.create_task(self._speak(work, sentences))
            finish_reason = writing.result()
        except* EngineError as failed:
            error = failed.exceptions[0]
            assert isinstance(error, EngineError)
            self._session.answer_failed(work.response_id, error.code, error.message, self._now())
        except* Exception:
            logger.exception("answer %s failed", work.response_id)
            self._session.answer_failed(
                work.response_id, "InternalError", "Something went wrong while answering.", self._now()
            )
        self._session.answer_ended(work.response_id, finish_reason, self._now())
        self._follow()

    async def _write(self, work: Respond, sentences: asyncio.Queue[str | None]) -> str:
        """Stream the chat model into the session, and its sentences to the speaker; returns the finish reason."""
        splitter = SentenceSplitter()
        speaks = work.config.speaks
        finish_reason = "stop"
        async with aclosing(self._chat.stream(self._request(work))) as deltas:
            async for delta in deltas:
                if delta.speech_rate is not None:
                    self._speech_rate = delta.speech_rate
                if delta.text:
                    self._session.answer_text(work.response_id, delta.text, self._now())
                    self._follow()
                    for sentence in splitter.feed(delta.text) if speaks else ():
                        await sentences.put(sentence)
                if delta.tool_call:
                    call = delta.tool_call
                    self._session.answer_call(
                        work.response_id, call.index, call.call_id, call.name, call.arguments, self._now()
                    )
                    self._follow()
                if delta.usage:
                    self._session.answer_used(work.response_id, delta.usage.input_tokens, delta.usage.output_tokens)
                finish_reason = delta.finish_reason or finish_reason
        for sentence in splitter.flush() if speaks else ():
            await sentences.put(sentence)
        if speaks:
            await sentences.put(None)
        return finish_reason

    async def _speak(self, work: Respond, sentences: asyncio.Queue[str | None]) -> None:
        """Turn sentences into audio, never further ahead of the listener than the session has room for."""
        said = 0
        pause = bytes(work.config.output_format.size(SENTENCE_PAUSE_MS))
        while (sentence := await sentences.get()) is not None:
            if said:
                self._session.answer_audio(work.response_id, pause, self._now())
            spoken = self._synthesizer.speak(
                speakable(sentence),
                voice=work.config.voice,
                sample_rate_hz=work.config.output_format.sample_rate_hz,
                rate=self._speech_rate,
            )
            async with aclosing(spoken) as pieces:
                async for pcm in pieces:
                    self._session.answer_audio(work.response_id, pcm, self._now())
                    self._follow()
                    await asyncio.sleep(0)  # many pieces come at once: let the first be sent before the rest is made
                    await self._room.wait()
            said += len(sentence)
            self._session.answer_spoken(work.response_id, said)

    def _request(self, work: Respond) -> ChatRequest:
        config = work.config
        extra = {
            "top_k": config.top_k,
            "presence_penalty": config.presence_penalty,
            "repetition_penalty": config.repetition_penalty,
        }
        return ChatRequest(
            messages=messages(work.history, config.instructions),
            tools=config.tools,
            tool_choice=config.tool_choice if config.tools else None,
            temperature=config.temperature,
            top_p=config.top_p,
            max_tokens=config.max_tokens,
            seed=config.seed,
            extra={name: value for name, value in extra.items() if value is not None},
            context={
                "model": self._call.model,
                "voice": config.voice,
                "started_at": self._started_at,
                "turns": self._session.turns,
                "time_zone": self._call.time_zone,
                "spoken": config.speaks,
                "speech_rate": self._speech_rate,
                "is_idle_prompt": work.is_idle_prompt,
            },
        )
