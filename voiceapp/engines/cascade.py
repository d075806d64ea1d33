"""A realtime model made of four engines: voice detection, recognition, chat and synthesis around one `Session`.

The session decides; here its decisions are carried out: audio is brought to frames, work is started and abandoned,
results are handed back, timers fire, and events go out in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from django.conf import settings

from voiceapp.catalogue.lookup import catalogue, mcp_addresses
from voiceapp.engines.hearing import HearingPipeline
from voiceapp.engines.interfaces import (
    ENGINE_SAMPLE_RATE_HZ,
    VAD_FRAME_SAMPLES,
    Call,
    ChatProvider,
    Provider,
    Recognizer,
    Synthesizer,
    TurnPredictor,
    Voice,
    VoiceDetection,
    VoiceDetector,
)
from voiceapp.engines.models.fallback import ConversationRecognizer, ConversationSynthesizer
from voiceapp.engines.models.providers import connect_tools, links_in_use, provider_of, unavailable
from voiceapp.engines.reply import ReplyPipeline, Writer
from voiceapp.engines.sound.caller_sound import CallerSound, Frame
from voiceapp.errors import FloodError, InvalidParameter, VoiceError
from voiceapp.protocol.audio import AudioFormat, Meter
from voiceapp.protocol.configuration import SessionConfig, configured, with_changes
from voiceapp.protocol.session import Session
from voiceapp.protocol.speaking.stock_replies import StockReply
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import (
    Abandon,
    Confirm,
    ListTools,
    PlayoutCut,
    Respond,
    Result,
    TurnEnded,
)

SLICE_SAMPLES = 16 * VAD_FRAME_SAMPLES
"""Audio that is heard before others on the event loop get their turn: half a second, under 5 ms."""


class CascadeModel(Provider):
    """A `RealtimeModel`; the engines behind it are shared by all conversations."""

    def __init__(self) -> None:
        models = catalogue()
        self._detection: VoiceDetection = provider_of(models.default("vad"))
        self._turns: TurnPredictor = provider_of(models.default("turn"))
        self._recognizers = links_in_use("asr")
        provider_of(models.default("chat"))
        self._synthesizers = links_in_use("tts")

    @property
    def voices(self) -> Sequence[Voice]:
        return self._synthesizer("").voices

    @property
    def default_voice(self) -> str:
        return self._synthesizer("").default_voice

    def check(self) -> None:
        for error in unavailable():
            raise error

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> CascadeStream:
        return CascadeStream(
            call,
            tasks,
            detector=self._detection.detector(),
            turns=self._turns,
            recognizer=ConversationRecognizer(self._recognizers, session_id=call.session_id),
            writer=writer_of(call, tasks),
            synthesizer=self._synthesizer(call.session_id),
        )

    def _synthesizer(self, session_id: str) -> Synthesizer:
        return ConversationSynthesizer(self._synthesizers, session_id=session_id)


def writer_of(call: Call, tasks: asyncio.TaskGroup) -> Writer:
    """Return what writes the replies of a conversation, which begins to reach it."""
    card = call.chat or catalogue().default("chat")
    chat: ChatProvider = provider_of(card)
    tasks.create_task(chat.prepare(call), name=f"session {call.session_id}: reach the chat model")
    calls_tools = card.chat.tools and card.chat.converses
    if calls_tools:
        connect_tools()
    return Writer(
        chat,
        card.author,
        is_far=not card.runs_here,
        calls_tools=calls_tools,
        speculates={"free": card.runs_here, "always": True, "never": False}[settings.SPECULATIVE_REPLIES],
        replies_in_english=card.chat.is_english,
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
        writer: Writer,
        synthesizer: Synthesizer,
    ) -> None:
        self._tasks = tasks
        self._call = call
        self._detector = detector
        self._now = asyncio.get_running_loop().time
        self._usual = SessionConfig(
            model=call.model,
            voice=synthesizer.default_voice,
            input_format=AudioFormat("pcm16", call.input_rate_hz),
            output_format=AudioFormat("pcm16", 24_000),
            transcription_model=catalogue().default("asr").name,
            listens_only=call.listens_only,
            has_track=call.has_track,
            languages=call.languages,
            mcp_servers=() if call.is_guest else mcp_addresses(),
        )
        self._session = Session(
            session_id=call.session_id,
            config=configured(self._usual, call.usual, call.opening, fixed=call.fixed),
            says_not_understood=settings.SAY_NOT_UNDERSTOOD,
            fills_waits=settings.CHAT_FILLERS,
            speculates=writer.speculates,
            replies_in_english=writer.replies_in_english,
        )
        self._meter = Meter(rate_per_s=2 * 1000)
        self._running: dict[str, set[asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()
        self._waits_until: float | None = None
        """When `events` looks at the session's timers, if nothing changes before."""
        self._idle = asyncio.Event()
        self._room = asyncio.Event()
        self._hearing = HearingPipeline(
            turns=turns,
            recognizer=recognizer,
            done=self._done,
            refuse=self._session.refuse,
            terms=lambda: self._session.config.terms,
        )
        self._replies = ReplyPipeline(
            call,
            writer=writer,
            synthesizer=synthesizer,
            done=self._done,
            room=self._room,
            turns=lambda: self._session.turns,
            reminders=lambda: self._session.reminders.pending(self._now()),
        )
        self._session.open(self._now(), call.first_words, guest_lasts_s=call.guest_lasts_s)
        self._follow()

    @cached_property
    def _sound(self) -> CallerSound:
        return CallerSound(self._session.config)

    async def receive(self, event: ev.ClientEvent) -> None:
        if isinstance(event, ev.AudioAppend):
            await self._hear(event)
            return
        if isinstance(event, ev.AudioCommit | ev.SessionFinish):
            for frame in self._sound.flush():
                self._take(frame, self._detector.probability(frame.to_detect))
        elif isinstance(event, ev.AudioClear):
            self._sound.clear()
        elif isinstance(event, ev.SessionUpdate) and event.session.get("prompt"):
            try:
                await self._answer_as(event.session["prompt"])
            except VoiceError as refused:
                self._session.refuse(InvalidParameter(refused.message, param="session.prompt"), event.event_id)
                self._changed.set()
                return
        self._session.receive(event, self._now())
        self._sound.configure(self._session.config)
        self._follow()

    async def _answer_as(self, prompt: object) -> None:
        """Let the agent answer that a `prompt` names, if this is the first one.

        Raises:
            VoiceError: if the caller may not have it, or it comes too late.
        """
        session, before = self._session, self._call
        if before.prompted is None or prompt == session.config.prompt:
            return
        if session.config.prompt is not None or not session.is_untouched:
            raise InvalidParameter("A conversation keeps the agent that it began with. Begin another one.")
        fields = (await before.prompted(prompt)).fields
        call = self._call = replace(before, **fields)
        began = configured(self._usual, before.usual, before.opening, fixed=before.fixed)
        config = configured(self._usual, call.usual, call.opening, fixed=call.fixed)
        writer = writer_of(call, self._tasks)
        session.answer_as(
            with_changes(config, began, session.config),
            call.first_words,
            self._now(),
            speculates=writer.speculates,
            replies_in_english=writer.replies_in_english,
        )
        self._replies.answer_as(call, writer)

    async def events(self) -> AsyncGenerator[ev.ServerEvent | PlayoutCut | TurnEnded, None]:
        session = self._session
        while True:
            self._changed.clear()
            for event in session.events_to_send():
                if isinstance(event, ev.AudioDelta) and session.response is not None:
                    self._sound.note_played(event, session.response.config.output_format)
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
            self._waits_until = session.next_timer()
            try:
                async with asyncio.timeout_at(self._waits_until):
                    await self._changed.wait()
            except TimeoutError:
                session.tick(self._now())
                self._follow()

    def notify(self, words: str | StockReply) -> bool:
        will_say = self._session.notify(words)
        self._follow()
        return will_say

    async def wait_idle(self) -> None:
        self._idle.clear()
        self._changed.set()  # `events` looks again: only there is it known that all was taken
        await self._idle.wait()

    @property
    def _is_busy(self) -> bool:
        """A response is under way, or something that may lead to one."""
        response = self._session.response
        return bool(self._running) or (response is not None and response.is_live)

    @property
    def is_working(self) -> bool:
        """An engine is at work, other than on a response that waits until more of it was played."""
        waits = None if self._room.is_set() or self._session.response is None else self._session.response.id
        return any(tasks and key != waits for key, tasks in self._running.items())

    def close(self) -> Sequence[TurnEnded]:
        for running in self._running.values():
            for task in running:
                task.cancel()
        self._session.close(self._now())
        return self._session.records()

    # ── Listening ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _hear(self, event: ev.AudioAppend) -> None:
        try:
            samples = self._sound.convert(event.audio)
        except InvalidParameter as refused:
            self._session.refuse(refused, event.event_id)
            self._changed.set()
            return
        if not self._meter.accept(len(samples) / 16, self._now()):
            raise FloodError("Audio arrives faster than twice real time.", code="audio_too_fast", param="audio")
        now = self._now()
        for start in range(0, len(samples), SLICE_SAMPLES):
            if start:
                await asyncio.sleep(0)
            piece = samples[start : start + SLICE_SAMPLES]
            follow_s = (len(samples) - start - len(piece)) / ENGINE_SAMPLE_RATE_HZ
            frames = self._sound.push(piece, now - follow_s)
            for frame in frames[:-1]:
                self._take(frame, self._detector.probability(frame.to_detect))
            for frame in frames[-1:]:
                self._take(frame, await self._detector.probability_live(frame.to_detect))
                due = self._session.next_timer()
                if self._session.has_news or (
                    due is not None and (self._waits_until is None or due < self._waits_until)
                ):
                    self._follow()

    def _take(self, frame: Frame, probability: float) -> None:
        self._session.hear(frame.to_read, probability, self._now(), frame.echo)

    # ── Carrying out ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _done(self, result: Result) -> None:
        """Hand a result to the session, and do what follows from it."""
        self._session.done(result, self._now())
        self._follow()

    def _follow(self) -> None:
        """Start what the session asks for, and let the events go out."""
        for work in self._session.work_to_start():
            if isinstance(work, Abandon):
                self._abandon(work)
            elif isinstance(work, Respond):
                self._spawn(work.response_id, self._replies.respond(work))
            elif isinstance(work, ListTools):
                self._spawn(work.item_id, self._replies.list_tools(work))
            elif isinstance(work, Confirm):
                self._replies.confirm(work.response_id)
            else:
                self._spawn(work.item_id, self._hearing.carry_out(work))
        if self._session.has_room_for_audio:
            self._room.set()
        else:
            self._room.clear()
        self._changed.set()

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
