"""Replies of one session: written by a chat model, cut into sentences and spoken."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from weakref import WeakValueDictionary

from django.conf import settings

from voiceapp import tracing
from voiceapp.engines.interfaces import (
    AssistantDelta,
    Author,
    Call,
    ChatDelta,
    ChatMessage,
    ChatModel,
    ChatRequest,
    ChatUsage,
    NextResponse,
    SessionFacts,
    Synthesizer,
    ToolCallDelta,
)
from voiceapp.engines.mcp.replies import approved, listed, offered, replies
from voiceapp.engines.messages import messages, speakable
from voiceapp.engines.models.lanes import lanes, need_by
from voiceapp.engines.models.tokens import estimated
from voiceapp.engines.patience import Deadlines, ReplyPatience, WaitStep, attended, deadlines
from voiceapp.engines.sentences import FIRST_CLAUSE_CHARS, SentenceSplitter
from voiceapp.engines.voices.synthesizer import own_name
from voiceapp.engines.voices.word_times import TimedSpeech, placed
from voiceapp.errors import EngineError, EngineUnavailable
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.reminders import Reminder
from voiceapp.protocol.speaking.stock_replies import StockReply, stock_reply
from voiceapp.protocol.work import (
    ListTools,
    ReplyAside,
    ReplyAudio,
    ReplyAuthor,
    ReplyCall,
    ReplyDropped,
    ReplyEnded,
    ReplyFailed,
    ReplyReminders,
    ReplyServedBy,
    ReplySource,
    ReplySpoken,
    ReplyText,
    ReplyToolCall,
    ReplyUsed,
    ReplyWords,
    Respond,
    Result,
    ToolsListed,
)

logger = logging.getLogger(__name__)

SENTENCE_PAUSE_MS = 200
"""Between sentences that are synthesized one by one; without it they run together."""
SENTENCES_AHEAD = 4
"""Sentences by which writing may run ahead of speaking."""
SHORT_CLAUSE_CHARS, QUICK_S = 12, 0.15
"""The first clause of a hosted model's reply may be so short where the voice begins a sentence this soon: the rest is
there before that clause is heard."""
OURS = Author("skill")
"""Author of the sentences that this program says in place of a reply."""
SPARE_S = 0.4
"""Speech that is still to be heard when more is needed."""
GO_ON = "Your reply was cut off there. Go on from exactly there, and repeat nothing."
"""Asks a model for the rest of a reply that broke off."""
MOST_SPOKEN_TOKENS = 300
"""A spoken reply whose length the caller did not limit ends with the sentence after so many."""
LEAST_REPEATED = 6
"""Characters that a model has repeated where the next one continues a word."""

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


A_MODEL = Author("model")


@dataclass(frozen=True, slots=True)
class Writer:
    """The model that writes the replies of a conversation."""

    chat: ChatModel
    author: Author = A_MODEL
    """The author where `chat` names none."""
    is_far: bool = False
    """It runs on another server."""
    calls_tools: bool = False
    """It calls the operator's tools."""
    speculates: bool = False
    """Replies are begun while the caller may go on."""
    replies_in_english: bool = False
    """See `Session`."""


class _Aside(str):
    """A sentence that is spoken and is no part of the reply."""


class _Reply:
    """One reply on its way; a speculative one keeps its results back until it is confirmed."""

    def __init__(self, work: Respond, done: Callable[[Result], None], first_clause_chars: int) -> None:
        self.work = work
        self.splitter = SentenceSplitter(first_clause_chars=first_clause_chars)
        self.written = ""
        self.asked_tokens = 0
        """Tokens that the model was sent, by their length."""
        self.used = ChatUsage(0, 0)
        """Tokens so far, of the part before it broke off too."""
        self.spent = ChatUsage(0, 0)
        """Those of the part before it broke off."""
        self.spent_chars = 0
        """Length of that part."""
        self.finish_reason = "stop"
        self.calls: set[int] = set()
        """Function calls of functions that exist."""
        self.unknown = ""
        """Name of a function that does not exist, and was called."""
        self.unspoken_since = math.inf
        """Time since which words wait for more, to be spoken with them."""
        self.dry_at = 0.0
        """Time at which the listener has heard nearly everything; infinite while speech is made."""
        self.sentences: asyncio.Queue[str | None] = asyncio.Queue(SENTENCES_AHEAD)
        self.speech_rate: float | None = None
        """The rate that it asks for, if any."""
        self.author: Author | None = None
        self.confirmed = asyncio.Event()
        self.admitted = asyncio.Event()
        """The ledger of its caller lets it begin."""
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

    def cut(self, delta: str) -> list[str]:
        """The pieces to speak that more words complete."""
        pieces = self.splitter.feed(delta)
        if pieces or not self.splitter.rest.strip():
            self.unspoken_since = math.inf
        if self.splitter.rest.strip():
            self.unspoken_since = min(self.unspoken_since, time.monotonic())
        return pieces

    def speak_at(self, gathering_s: float) -> float:
        """Time at which words that wait for more are spoken."""
        return max(self.unspoken_since + gathering_s, self.dry_at) if self.sentences.empty() else math.inf

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
        writer: Writer,
        synthesizer: Synthesizer,
        done: Callable[[Result], None],
        room: asyncio.Event,
        turns: Callable[[], int],
        reminders: Callable[[], tuple[Reminder, ...]],
    ) -> None:
        """`done` takes each result; `room` is set while the session takes more audio; `turns` counts its responses, and
        `reminders` are those that its caller has set."""
        self.answer_as(call, writer)
        self._synthesizer = synthesizer
        self._done = done
        self._room = room
        self._turns = turns
        self._reminders = reminders
        self._limits: Deadlines = deadlines()
        self._asides = Random().randrange(100)  # noqa: S311 - varies sentences, guards nothing
        self._started_at = time.time()
        self._is_quick = False
        """The voice began its latest sentence quickly."""
        self._replies: WeakValueDictionary[str, _Reply] = WeakValueDictionary()
        """Replies by the id of their response, for as long as their task lives."""

    def answer_as(self, call: Call, writer: Writer) -> None:
        """Write further replies in the terms of another agent."""
        name = writer.author.name or writer.author.kind
        self._chat = tracing.TracedChat(writer.chat, name) if settings.TRACING else writer.chat
        self._call, self._author, self._is_far = call, writer.author, writer.is_far
        self._calls_tools = writer.calls_tools
        self._speech_rate = call.pace

    def respond(self, work: Respond) -> Coroutine[Any, Any, None]:
        """Write and speak one reply; every way out but cancellation ends it for the session.

        When the chat model fails, the caller hears an apology before the reply ends as failed. A speculative reply gets
        as far as its first sound, and waits for `confirm`.
        """
        clause_chars = SHORT_CLAUSE_CHARS if self._is_far and self._is_quick else FIRST_CLAUSE_CHARS
        reply = _Reply(work, self._done, clause_chars)
        self._replies[work.response_id] = reply  # at once: `confirm` may follow at once
        return self._carry_out(reply)

    async def _carry_out(self, reply: _Reply) -> None:
        work = reply.work
        tracing.belongs_to_turn(work.ordinal)
        end: ReplyEnded | ReplyFailed
        try:
            if work.is_speculative and not self._is_far and not lanes().voice.is_free:
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
        finally:
            if self._is_far and reply.asked_tokens and not reply.confirmed.is_set():
                self._done(ReplyDropped(work.response_id, reply.asked_tokens))

    async def list_tools(self, work: ListTools) -> None:
        """Ask a server for its tools."""
        self._done(ToolsListed(work, await listed(work.server_label)))

    def confirm(self, response_id: str) -> None:
        """Hand over what there is of a speculative reply, and let it go on."""
        reply = self._replies[response_id]
        self._speech_rate = reply.speech_rate or self._speech_rate
        reply.confirm()

    async def _write(self, reply: _Reply) -> ReplyEnded | ReplyFailed:
        """Stream the reply into the session, and its sentences to the speaker; returns what the reply ends with."""
        work = reply.work
        end: ReplyEnded | ReplyFailed
        request = self._request(work)
        try:
            try:
                await self._follow(self._deltas(reply, request), reply)
            except EngineError as error:
                if not reply.written.strip() or reply.calls or not error.retryable:
                    raise
                logger.warning("response %s: the rest is asked for: %s", work.response_id, error.message)
                await self._speak_rest(reply)
                if reply.used == ChatUsage(0, 0):
                    used = ChatUsage(reply.asked_tokens, estimated(reply.written))
                    await self._take(ChatDelta(usage=used), reply)
                reply.spent, reply.spent_chars = reply.used, len(reply.written)
                await self._follow(self._rest(reply, request), reply)
            end = ReplyEnded(work.response_id, reply.finish_reason)
            if not (reply.written.strip() or reply.calls) and not _is_rest(request):
                if reply.finish_reason != "content_filter":
                    raise EngineUnavailable(_without_words(reply))
                told = stock_reply(StockReply.FILTERED, work.config.transcription_language)
                await self._take(ChatDelta(text=told, author=OURS), reply)
        except Exception as error:
            end = _failure(work, error)
            await self._take(ChatDelta(text=_apology(work, reply.written), author=reply.author or OURS), reply)
        await self._speak_rest(reply)
        if work.config.speaks:
            await reply.sentences.put(None)
        return end

    async def _follow(self, deltas: AsyncGenerator[ChatDelta, None], reply: _Reply) -> None:
        """Take a reply as it comes, and do what is due while nothing comes.

        Raises:
            EngineError: if the model fails, or is waited for no longer.
        """
        config = reply.work.config
        patience = ReplyPatience(
            self._limits,
            speaks=config.speaks and not reply.written.strip(),
            may_call=bool(config.tools),
            speak_at=lambda: reply.speak_at(self._limits.gathering_s),
        )
        may_cut = config.speaks and config.max_tokens is None and not config.tools
        may_cut = may_cut and not (self._calls_tools and settings.MCP_SERVERS)
        wanted = reply.admitted if self._call.before_response else reply.confirmed
        async with aclosing(attended(deltas, patience, wanted)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ChatDelta):
                    reply.finish_reason = piece.finish_reason or reply.finish_reason
                    await self._take(piece, reply)
                    if may_cut and _is_long(reply.written):
                        written = estimated(reply.written[reply.spent_chars :])
                        await self._take(ChatDelta(usage=ChatUsage(reply.asked_tokens, written)), reply)
                        reply.finish_reason = "length"
                        return
                elif piece is WaitStep.SPEAK:
                    reply.unspoken_since = math.inf
                    if words := reply.splitter.take_words():
                        await reply.sentences.put(words)
                else:
                    self._asides += 1
                    which = StockReply.FILLER if piece is WaitStep.FILL else StockReply.LONGER
                    await reply.sentences.put(_Aside(stock_reply(which, config.transcription_language, self._asides)))

    async def _rest(self, reply: _Reply, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Yield the rest of a reply that broke off; what a model repeats of it all the same is left out."""
        said = (ChatMessage("assistant", reply.written), ChatMessage("user", GO_ON))
        before, again, is_new = reply.written, "", False
        async with aclosing(self._chat.stream(replace(request, messages=(*request.messages, *said)))) as deltas:
            async for delta in deltas:
                if not is_new:
                    again += delta.text
                    is_new = not _may_repeat(before, again)
                    delta = replace(delta, text=_without_repeated(before, again) if is_new else "")
                yield delta
        if not is_new and (text := _without_repeated(before, again)):
            yield ChatDelta(text=text)

    async def _speak_rest(self, reply: _Reply) -> None:
        """Hand the words that wait for more to the speaker."""
        reply.unspoken_since = math.inf
        for sentence in reply.splitter.flush() if reply.work.config.speaks else ():
            await reply.sentences.put(sentence)

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
        if delta.dropped:
            self._done(ReplyDropped(work.response_id, delta.dropped * reply.asked_tokens))
        if delta.served_by:
            reply.hand_over(ReplyServedBy(work.response_id, delta.served_by))
        if author := delta.author or (None if reply.author or not delta.text else self._author):
            reply.author = author
            reply.hand_over(ReplyAuthor(work.response_id, author))
        if delta.text:
            reply.written += delta.text
            reply.hand_over(ReplyText(work.response_id, delta.text))
            for sentence in reply.cut(delta.text) if work.config.speaks else ():
                await reply.sentences.put(sentence)
        if (call := delta.tool_call) and self._is_known(call, reply):
            reply.hand_over(ReplyCall(work.response_id, call.index, call.call_id, call.name, call.arguments))
        if used := delta.usage:
            spent = reply.spent
            reply.used = ChatUsage(spent.input_tokens + used.input_tokens, spent.output_tokens + used.output_tokens)
            reply.hand_over(ReplyUsed(work.response_id, reply.used.input_tokens, reply.used.output_tokens))

    @staticmethod
    def _is_known(call: ToolCallDelta, reply: _Reply) -> bool:
        """Return whether a function exists that the model calls; its first fragment names it."""
        if any(call.name == tool["function"]["name"] for tool in reply.work.config.functions):
            reply.calls.add(call.index)
        elif call.name:
            reply.unknown = call.name
        return call.index in reply.calls

    async def _deltas(self, reply: _Reply, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Yield the chat model's reply, or the text in its place."""
        work = reply.work
        if self._call.before_response:
            await reply.confirmed.wait()  # what is only begun is not charged
            instead = await self._call.before_response(_next_response(work, request))
            reply.admitted.set()
            if instead:
                yield ChatDelta(text=instead, author=OURS)
                return
        if work.instead:
            yield ChatDelta(text=work.instead, author=OURS)
            return
        reply.asked_tokens = sum(estimated(message.content) for message in request.messages)
        tools = {}
        if settings.MCP_SERVERS:
            converses = self._calls_tools and not work.config.functions
            approves, is_guest = work.config.approves_tools, self._call.is_guest
            tools = await offered(
                work.config.tools, self._call.tools, converses=converses, is_guest=is_guest, approves=approves
            )
        if not tools:
            async with aclosing(self._chat.stream(request)) as deltas:
                async for delta in deltas:
                    yield delta
            return
        request = replace(request, facts=replace(request.facts, are_tools_ours=not work.config.tools))
        await reply.confirmed.wait()  # what a tool does cannot be taken back
        found = replies(self._chat, request, tools, approved(work.history), work.response_id)
        is_asked = False
        async with aclosing(found) as parts:
            async for part in parts:
                if isinstance(part, ReplyToolCall):
                    reply.calls.add(-1)
                    reply.hand_over(part)
                    is_asked = is_asked or part.is_asked
                else:
                    yield part
        if is_asked and work.config.approves_tools and work.config.speaks and not reply.written.strip():
            yield ChatDelta(text=stock_reply(StockReply.PERMISSION, work.config.transcription_language), author=OURS)

    async def _speak(self, reply: _Reply) -> None:
        """Turn sentences into audio, never further ahead of the listener than the session has room for."""
        work, said = reply.work, 0
        if work.is_speculative and not lanes().voice.is_free:  # what may not be heard makes no one wait
            await reply.confirmed.wait()
        pause = bytes(work.config.output_format.size(SENTENCE_PAUSE_MS))
        heard_from, made_ms = 0.0, 0.0
        while (sentence := await reply.sentences.get()) is not None:
            if not any(map(str.isalnum, sentence)):  # marks alone are not spoken
                said += len(sentence)
                continue
            reply.dry_at = math.inf
            if said:
                reply.hand_over(ReplyAudio(work.response_id, pause))
                made_ms += SENTENCE_PAUSE_MS
            aside = sentence if isinstance(sentence, _Aside) else ""
            voice = self._voice(work.config)
            spoken = self._synthesizer.speak(
                speakable(sentence),
                voice=voice,
                sample_rate_hz=work.config.output_format.sample_rate_hz,
                rate=reply.speech_rate or self._speech_rate,
            )
            placed_to, asked_at, is_first = 0, time.monotonic(), True
            if settings.TRACING:
                spoken = tracing.until_first("speech", voice, spoken)
            async with aclosing(spoken) as pieces:
                async for pcm in pieces:
                    if is_first:
                        self._is_quick, is_first = time.monotonic() - asked_at < QUICK_S, False
                    if (
                        not aside
                        and isinstance(pcm, TimedSpeech)
                        and (words := [*placed(sentence, placed_to, pcm.words)])
                    ):
                        placed_to = words[-1].characters
                        known = (word._replace(characters=said + word.characters) for word in words)
                        reply.hand_over(ReplyWords(work.response_id, tuple(known)))
                    sound = ReplyAside(work.response_id, pcm, aside) if aside else ReplyAudio(work.response_id, pcm)
                    reply.hand_over(sound)
                    await asyncio.sleep(0)  # many pieces come at once: let the first be sent before the rest is made
                    await reply.confirmed.wait()
                    await self._room.wait()
                    heard_from = heard_from or time.monotonic()
                    made_ms += work.config.output_format.duration_ms(len(pcm))
                    need_by(heard_from + made_ms / 1000 - SPARE_S)
            reply.dry_at = heard_from + made_ms / 1000 - SPARE_S
            if not aside:
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
            tools=config.functions,
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
            ),
            briefing=self._call.briefing,
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
        logger.warning("response %s: the reply failed: %s", work.response_id, error.for_operators)
        return ReplyFailed(work.response_id, error.code, error.message)
    logger.error("response %s: the reply failed with an unexpected error", work.response_id, exc_info=error)
    return ReplyFailed(work.response_id, "InternalError", "Something went wrong in the reply.")


def _apology(work: Respond, written: str) -> str:
    """Return the apology after the chat model has failed, having `written` so much."""
    language = work.config.transcription_language
    if not written.strip():
        return stock_reply(StockReply.NO_REPLY, language)
    return (" " if _is_whole(written) else "… ") + stock_reply(StockReply.BROKEN_OFF, language)


def _is_long(written: str) -> bool:
    """Return whether a spoken reply that is at the end of a sentence has become too long."""
    return _is_whole(written) and len(written) / 4 + len(_CJK.findall(written)) * (2 / 3 - 1 / 4) > MOST_SPOKEN_TOKENS


def _ends_to_repeat(before: str) -> list[str]:
    """The ends of a text that a model may begin again with, the longest first: from each word on."""
    text = before.strip()
    return [text[start:] for start in range(len(text)) if not start or not (text[start - 1].isalnum())]


def _may_repeat(before: str, again: str) -> bool:
    """Return whether all that a model has written `again` may be a repetition."""
    return any(end.startswith(again.strip()) for end in _ends_to_repeat(before))


def _without_repeated(before: str, again: str) -> str:
    """Return what a model adds that was to go on after `before`."""
    text = again.lstrip()
    for end in _ends_to_repeat(before):
        rest = text.removeprefix(end)
        if rest != text and (len(end) >= LEAST_REPEATED or not (rest + " ")[0].isalnum()):
            return rest.lstrip() if before[-1].isspace() else rest
    if not text or before[-1].isspace():
        return text
    is_apart = text != again or _CJK.match(before[-1]) or before[-1] in "。！？、，" or _CJK.match(text)
    return again if is_apart or text[0] in ",.;:!?…%)" else f" {text}"


def _is_whole(written: str) -> bool:
    return written.rstrip().endswith((".", "!", "?", "…", "。", "！", "？"))


def _is_rest(request: ChatRequest) -> bool:
    """Return whether the rest of a reply is asked for, of which nothing may be left."""
    return bool(request.messages) and request.messages[-1].role == "assistant"


def _without_words(reply: _Reply) -> str:
    """The cause of a reply without words."""
    if reply.unknown:
        return f"The language model called a function that does not exist, {reply.unknown[:64]!r}, and wrote no words."
    if reply.finish_reason == "length":
        return "The language model used up its tokens before the first word of its reply."
    return "The language model ended its reply without a word."
