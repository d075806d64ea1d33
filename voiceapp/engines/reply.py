"""Replies of one session: written by a chat model, cut into sentences and spoken."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any
from weakref import WeakValueDictionary

from voiceapp.engines.interfaces import (
    AssistantDelta,
    Call,
    ChatDelta,
    ChatModel,
    ChatRequest,
    NextResponse,
    SessionFacts,
    Synthesizer,
)
from voiceapp.engines.messages import messages, speakable
from voiceapp.engines.models.lanes import lanes, need_by
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.engines.voices.synthesizer import own_name
from voiceapp.errors import EngineError
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.reminders import Reminder
from voiceapp.protocol.speaking.stock_replies import StockReply, stock_reply
from voiceapp.protocol.work import (
    ReplyAudio,
    ReplyCall,
    ReplyEnded,
    ReplyFailed,
    ReplyReminders,
    ReplyServedBy,
    ReplySource,
    ReplySpoken,
    ReplyText,
    ReplyUsed,
    Respond,
    Result,
)

logger = logging.getLogger(__name__)

SENTENCE_PAUSE_MS = 200
"""Between sentences that are synthesized one by one; without it they run together."""
SENTENCES_AHEAD = 4
"""Sentences by which writing may run ahead of speaking."""
SPARE_S = 0.4
"""Speech that is still to be heard when more is needed."""


class _Reply:
    """One reply on its way; a speculative one keeps its results back until it is confirmed."""

    def __init__(self, work: Respond, done: Callable[[Result], None]) -> None:
        self.work = work
        self.splitter = SentenceSplitter()
        self.sentences: asyncio.Queue[str | None] = asyncio.Queue(SENTENCES_AHEAD)
        self.speech_rate: float | None = None
        """The rate that it asks for, if any."""
        self.confirmed = asyncio.Event()
        self._done = done
        self._kept: list[Result] = []
        if not work.is_speculative:
            self.confirmed.set()

    def hand_over(self, result: Result) -> None:
        """Give a result to the session, or keep it until `confirm`."""
        if self.confirmed.is_set():
            self._done(result)
        else:
            self._kept.append(result)

    def confirm(self) -> None:
        self.confirmed.set()
        kept, self._kept = self._kept, []
        for result in kept:
            self._done(result)


class ReplyPipeline:
    """Carries out `Respond` for one session."""

    def __init__(
        self,
        call: Call,
        *,
        chat: ChatModel,
        synthesizer: Synthesizer,
        done: Callable[[Result], None],
        room: asyncio.Event,
        turns: Callable[[], int],
        reminders: Callable[[], tuple[Reminder, ...]],
    ) -> None:
        """`done` takes each result; `room` is set while the session takes more audio; `turns` counts its responses, and
        `reminders` are those that its caller has set."""
        self._call = call
        self._chat = chat
        self._synthesizer = synthesizer
        self._done = done
        self._room = room
        self._turns = turns
        self._reminders = reminders
        self._started_at = time.time()
        self._speech_rate = 1.0
        self._replies: WeakValueDictionary[str, _Reply] = WeakValueDictionary()
        """Replies by the id of their response, for as long as their task lives."""

    def respond(self, work: Respond) -> Coroutine[Any, Any, None]:
        """Write and speak one reply; every way out but cancellation ends it for the session.

        When the chat model fails, the caller hears an apology before the reply ends as failed. A speculative reply gets
        as far as its first sound, and waits for `confirm`.
        """
        reply = self._replies[work.response_id] = _Reply(work, self._done)  # at once: `confirm` may follow at once
        return self._carry_out(reply)

    async def _carry_out(self, reply: _Reply) -> None:
        work = reply.work
        end: ReplyEnded | ReplyFailed
        if work.is_speculative and not lanes().voice.is_free:
            await reply.confirmed.wait()
        try:
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._write(reply), name=f"write {work.response_id}")
                if work.config.speaks:
                    group.create_task(self._speak(reply), name=f"speak {work.response_id}")
            end = writing.result()
        except* Exception as failed:  # the synthesizer's, without which no apology is heard either
            end = _failure(work, failed.exceptions[0])
        reply.hand_over(end)
        await reply.confirmed.wait()

    def confirm(self, response_id: str) -> None:
        """Hand over what there is of a speculative reply, and let it go on."""
        reply = self._replies[response_id]
        self._speech_rate = reply.speech_rate or self._speech_rate
        reply.confirm()

    async def _write(self, reply: _Reply) -> ReplyEnded | ReplyFailed:
        """Stream the reply into the session, and its sentences to the speaker; returns what the reply ends with."""
        work = reply.work
        written, finish_reason = "", "stop"
        end: ReplyEnded | ReplyFailed
        try:
            async with aclosing(self._deltas(reply)) as deltas:
                async for delta in deltas:
                    written += delta.text
                    finish_reason = delta.finish_reason or finish_reason
                    await self._take(delta, reply)
            end = ReplyEnded(work.response_id, finish_reason)
        except Exception as error:
            end = _failure(work, error)
            await self._take(ChatDelta(text=_apology(work, written)), reply)
        if work.config.speaks:
            for sentence in (*reply.splitter.flush(), None):
                await reply.sentences.put(sentence)
        return end

    def _take_beside_words(self, delta: AssistantDelta, reply: _Reply) -> None:
        """Take what the built-in assistant sends beside the words of a reply."""
        if delta.speech_rate is not None:
            reply.speech_rate = delta.speech_rate
            if reply.confirmed.is_set():
                self._speech_rate = delta.speech_rate
        if delta.reminders is not None:
            reply.hand_over(ReplyReminders(reply.work.response_id, delta.reminders))
        if delta.source is not None:
            reply.hand_over(ReplySource(reply.work.response_id, delta.source))

    async def _take(self, delta: ChatDelta, reply: _Reply) -> None:
        work = reply.work
        if isinstance(delta, AssistantDelta):
            self._take_beside_words(delta, reply)
        if delta.served_by:
            reply.hand_over(ReplyServedBy(work.response_id, delta.served_by))
        if delta.text:
            reply.hand_over(ReplyText(work.response_id, delta.text))
            for sentence in reply.splitter.feed(delta.text) if work.config.speaks else ():
                await reply.sentences.put(sentence)
        if delta.tool_call:
            call = delta.tool_call
            reply.hand_over(ReplyCall(work.response_id, call.index, call.call_id, call.name, call.arguments))
        if delta.usage:
            reply.hand_over(ReplyUsed(work.response_id, delta.usage.input_tokens, delta.usage.output_tokens))

    async def _deltas(self, reply: _Reply) -> AsyncGenerator[ChatDelta, None]:
        """Yield the chat model's reply, or the text in its place."""
        work = reply.work
        request = self._request(work)
        if self._call.before_response:
            await reply.confirmed.wait()  # what is only begun is not charged
            if instead := await self._call.before_response(_next_response(work, request)):
                yield ChatDelta(text=instead)
                return
        if work.instead:
            yield ChatDelta(text=work.instead)
            return
        async with aclosing(self._chat.stream(request)) as deltas:
            async for delta in deltas:
                yield delta

    async def _speak(self, reply: _Reply) -> None:
        """Turn sentences into audio, never further ahead of the listener than the session has room for."""
        work, said = reply.work, 0
        pause = bytes(work.config.output_format.size(SENTENCE_PAUSE_MS))
        heard_from, made_ms = 0.0, 0.0
        while (sentence := await reply.sentences.get()) is not None:
            if said:
                reply.hand_over(ReplyAudio(work.response_id, pause))
                made_ms += SENTENCE_PAUSE_MS
            spoken = self._synthesizer.speak(
                speakable(sentence),
                voice=self._voice(work.config),
                sample_rate_hz=work.config.output_format.sample_rate_hz,
                rate=reply.speech_rate or self._speech_rate,
            )
            async with aclosing(spoken) as pieces:
                async for pcm in pieces:
                    reply.hand_over(ReplyAudio(work.response_id, pcm))
                    await asyncio.sleep(0)  # many pieces come at once: let the first be sent before the rest is made
                    await reply.confirmed.wait()
                    await self._room.wait()
                    heard_from = heard_from or time.monotonic()
                    made_ms += work.config.output_format.duration_ms(len(pcm))
                    need_by(heard_from + made_ms / 1000 - SPARE_S)
            said += len(sentence)
            reply.hand_over(ReplySpoken(work.response_id, said))

    def _voice(self, config: SessionConfig) -> str:
        """The session's voice; for one that is English or not chosen, one that speaks the session's language."""
        language = (config.transcription_language or "").split("-")[0].lower()
        languages = {voice.name: voice.language for voice in self._synthesizer.voices}
        own = config.voice if config.voice in languages else own_name(config.voice)
        is_chosen = config.voice != self._synthesizer.default_voice and languages.get(own) != "en"
        if not language or is_chosen or languages.get(own) in ("", language):
            return config.voice
        return next((name for name, spoken in languages.items() if spoken == language), config.voice)

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
            facts=SessionFacts(
                model=self._call.model,
                voice=config.voice,
                time_zone=self._call.time_zone,
                started_at=self._started_at,
                turns=self._turns(),
                speech_rate=self._speech_rate,
                is_idle_prompt=work.is_idle_prompt,
                speaks=config.speaks,
                reminders=self._reminders(),
                knows_tasks=self._call.next_task_end is not None,
            ),
        )


def _next_response(work: Respond, request: ChatRequest) -> NextResponse:
    words = [message.content for message in request.messages]
    words += [call.arguments for message in request.messages for call in message.tool_calls]
    return NextResponse(
        ordinal=work.ordinal,
        input_audio_ms=work.input_audio_ms,
        input_bytes=sum(len(text.encode(errors="surrogatepass")) for text in words),
        max_tokens=request.max_tokens,
        speaks=work.config.speaks,
    )


def _failure(work: Respond, error: Exception) -> ReplyFailed:
    """Return the session's view of an error; an unexpected one is logged whole."""
    if isinstance(error, EngineError):
        return ReplyFailed(work.response_id, error.code, error.message)
    logger.error("response %s: the reply failed with an unexpected error", work.response_id, exc_info=error)
    return ReplyFailed(work.response_id, "InternalError", "Something went wrong in the reply.")


def _apology(work: Respond, written: str) -> str:
    """Return the apology after the chat model has failed, having `written` so much."""
    language = work.config.transcription_language
    if not written.strip():
        return stock_reply(StockReply.NO_REPLY, language)
    is_whole = written.rstrip().endswith((".", "!", "?", "…", "。", "！", "？"))
    return (" " if is_whole else "… ") + stock_reply(StockReply.BROKEN_OFF, language)
