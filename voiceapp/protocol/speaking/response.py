"""One response: the order of its events, its audio on time, and exactly one end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from voiceapp.protocol import g711
from voiceapp.protocol.audio import wav_header
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.conversation import Conversation
from voiceapp.protocol.hearing.utterance import Utterance
from voiceapp.protocol.items import Author, FunctionCall, Item, ItemStatus, McpItem, Message, Role
from voiceapp.protocol.speaking.playout import Playout
from voiceapp.protocol.states import LIVE, RESPONSE_STEPS, ResponseState, step
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import ReplyCall, ReplyToolCall, SpokenText

AUDIO_TOKEN_MS = 40
"""One audio token of usage: hosted models of this family count 25 a second."""


@dataclass(slots=True)
class Metrics:
    """Times of the stages of a response, in ms after one origin: a stage took the difference to the one before.

    After an utterance the origin is the arrival of the caller's last frame with speech at this server, and
    `first_audio_ms` is the voice-to-voice latency; after anything else it is the arrival of the request. The network
    and the playback buffer of the client come on top: the client alone can measure those.
    """

    end_of_turn_ms: int | None = None
    """The turn was found to be over; None unless the response follows an utterance."""
    recognition_ms: int | None = None
    """The end of the turn was known, and its final words; None unless the response follows an utterance."""
    first_token_ms: int | None = None
    """The chat model gave its first words or function call."""
    first_audio_ms: int | None = None
    """The first audio of the response was handed to the transport; None when it has none."""

    def to_wire(self) -> dict[str, int | None]:
        return {
            "end_of_turn_ms": self.end_of_turn_ms,
            "recognition_ms": self.recognition_ms,
            "first_token_ms": self.first_token_ms,
            "first_audio_ms": self.first_audio_ms,
        }


@dataclass(slots=True)
class Usage:
    """Tokens of one response: text as the chat model counted, audio by length."""

    input_text: int = 0
    output_text: int = 0
    input_audio_ms: int = 0

    def to_wire(self, output_audio_ms: float) -> dict[str, Any]:
        audio_in = math.ceil(self.input_audio_ms / AUDIO_TOKEN_MS)
        audio_out = math.ceil(output_audio_ms / AUDIO_TOKEN_MS)
        of_input = {"text_tokens": self.input_text, "audio_tokens": audio_in, "image_tokens": 0}
        of_output = {"text_tokens": self.output_text, "audio_tokens": audio_out}
        return {
            "total_tokens": self.input_text + audio_in + self.output_text + audio_out,
            "input_tokens": self.input_text + audio_in,
            "output_tokens": self.output_text + audio_out,
            "input_tokens_details": of_input,
            "output_tokens_details": of_output,
            # The same, as the sister dialect spells it.
            "input_token_details": of_input,
            "output_token_details": of_output,
        }


@dataclass(slots=True)
class Response:
    """A response under way. Methods append the events they cause through `send`."""

    id: str
    conversation_id: str | None
    """None for one out of band."""
    config: SessionConfig
    conversation: Conversation
    """The conversation that it reads, and that its output is added to."""
    send: Callable[[ev.ServerEvent], None]
    new_id: Callable[[str], str]
    origin: float
    """The moment metrics count from: last speech sample, or the request."""
    not_before: float = -math.inf
    """Time at which the caller has heard the response before."""
    is_idle_prompt: bool = False
    """Not asked for: the caller was silent for long."""
    state: ResponseState = ResponseState.WAITING
    metrics: Metrics = field(default_factory=Metrics)
    served_by: str = ""
    """The one of several models that replies; empty where there is one."""
    author: Author | None = None
    usage: Usage = field(default_factory=Usage)
    message: Message | None = None
    reason: str | None = None
    """Reason why it did not complete."""
    aside: str = ""
    """Words that were spoken before the reply and are no part of it."""
    _aside_ms: float = 0.0
    playout: Playout = field(init=False)
    _error: dict[str, Any] | None = None
    """Error of the engine that failed."""
    _output: list[Message | FunctionCall | McpItem] = field(default_factory=list)
    _tool_calls: dict[str, McpItem] = field(default_factory=dict)
    _told: int = 0
    """Characters that the client knows the times of."""
    _calls: dict[int, FunctionCall] = field(default_factory=dict)
    """Function calls by the model's own number."""

    def __post_init__(self) -> None:
        self.playout = Playout(self.config.output_format, not_before=self.not_before)

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    @property
    def is_out_of_band(self) -> bool:
        """Its output is not part of the session's conversation."""
        return self.conversation_id is None

    @property
    def called(self) -> list[str]:
        """Ids of its function calls."""
        return [call.call_id for call in self._calls.values()]

    def owns(self, item: Item) -> bool:
        return item in self._output

    def begin(self) -> None:
        """Say that a response will come."""
        self.send(ev.ResponseCreated(response=self.to_wire()))

    def generate(self) -> None:
        """The model starts to write."""
        self._step("generate")

    def note_turn(self, turn: Utterance) -> None:
        """Take over the length and times of the spoken turn that it answers."""
        self.usage.input_audio_ms = turn.length_ms
        if turn.origin is not None:
            self.origin = turn.origin
        if turn.ended_at is not None:
            self.metrics.end_of_turn_ms = self.since_origin(turn.ended_at)
        if turn.recognized_at is not None:
            self.metrics.recognition_ms = self.since_origin(turn.recognized_at)

    def note_author(self, author: Author) -> None:
        """Take note of who writes the reply; the last one known counts."""
        self.author = author
        if self.message:
            self.message.author = author

    def add_text(self, delta: str, now: float) -> None:
        """Add words of the reply."""
        self._note_first_token(now)
        item = self._open_message()
        item.text += delta
        event = ev.AudioTranscriptDelta if self.config.speaks else ev.TextDelta
        self.send(event(**self._where(item), delta=delta))

    def add_audio(self, pcm: bytes, now: float) -> None:
        """Add speech in the output format, spoken after all that came before."""
        message = self._open_message()
        if self.config.output_format.name == "wav" and not self.playout.pushed_ms:
            pcm = wav_header(self.config.output_format.sample_rate_hz) + pcm
        self.playout.push(pcm, now)
        message.audio_ms = self.playout.pushed_ms

    def add_aside(self, words: str, pcm: bytes, now: float) -> None:
        """Add speech that is no part of the reply."""
        self.add_audio(pcm, now)
        if not self.aside.endswith(words):
            self.aside = f"{self.aside} {words}"
        self._aside_ms = self.playout.pushed_ms
        if self.message:
            marks = self.message.marks
            marks.append((marks[-1][0] if marks else 0, self.playout.pushed_ms))

    def add_words(self, words: Sequence[SpokenText]) -> None:
        """Add the times of words in the audio that comes next."""
        item, since_ms = self._open_message(), self.playout.pushed_ms
        item.marks += [(word.characters, since_ms + word.end_ms) for word in words]
        self._tell_times(item, since_ms, words)

    def mark_spoken(self, characters: int) -> None:
        """All audio up to here speaks the first `characters` of the reply."""
        if self.message:
            marks, until_ms = self.message.marks, self.playout.pushed_ms
            while marks and (marks[-1][1] > until_ms or marks[-1][0] >= characters):
                marks.pop()  # the sound ends a moment before its last word was to
            since_ms = marks[-1][1] if marks else 0.0
            marks.append((characters, until_ms))
            self._tell_times(self.message, since_ms, [SpokenText(characters, 0.0, until_ms - since_ms)])

    def add_call(self, call: ReplyCall, now: float) -> None:
        """A fragment of a function call that the model wrote."""
        self._note_first_token(now)
        item = self._calls.get(call.index)
        if item is None:
            item = self._calls[call.index] = FunctionCall(
                id=self.new_id("item"),
                call_id=call.call_id or self.new_id("call"),
                name=call.name,
                status=ItemStatus.IN_PROGRESS,
            )
            self._announce(item)
        item.name = item.name or call.name
        if call.arguments:
            item.arguments += call.arguments
            self.send(ev.FunctionArgumentsDelta(**self._where(item), call_id=item.call_id, delta=call.arguments))

    def add_tool_call(self, call: ReplyToolCall) -> None:
        """Take note of a call of a server's tool, or of what came of it."""
        item = self._tool_calls.get(call.call_id)
        if item is None:
            fields: dict[str, Any] = {"server_label": call.server_label, "name": call.name, "arguments": call.arguments}
            if not call.is_asked:
                fields["approval_request_id"] = call.approval_request_id
            item = self._tool_calls[call.call_id] = McpItem(
                self.new_id("mcp"),
                "mcp_approval_request" if call.is_asked else "mcp_call",
                fields,
                ItemStatus.IN_PROGRESS,
            )
            self._announce(item)
            if not call.is_asked:
                self.send(ev.McpArgumentsDone(**self._where(item), arguments=call.arguments))
        place: dict[str, Any] = {"item_id": item.id, "output_index": self._output.index(item)}
        if call.output is None and call.error is None:
            if not call.is_asked:
                self.send(ev.McpCallBegun(**place))
            return
        del self._tool_calls[call.call_id]  # a model may give the next call the same id
        item.fields["output"] = call.output
        item.fields["error"] = {"type": "tool_execution_error", "message": call.error} if call.error else None
        self.send(ev.McpCallFailed(**place) if call.error else ev.McpCallCompleted(**place))

    def end(self, finish_reason: str) -> None:
        """The model wrote all it will; audio still waiting goes out on time."""
        self.playout.is_complete = True
        self.reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(finish_reason)
        self._step("end")

    def advance(self, now: float) -> None:
        """Send the audio that is due, and the end when everything was sent."""
        audio = self.playout.take(now)
        if audio and self.message:
            if self.metrics.first_audio_ms is None and self.playout.sent_ms > self._aside_ms:
                self.metrics.first_audio_ms = self.since_origin(now)
            heard_from = self.playout.heard_at - self.config.output_format.duration_ms(len(audio)) / 1000
            if self.config.output_format.is_telephone:
                audio = g711.encoded(audio, self.config.output_format.name)
            self.send(ev.AudioDelta(**self._where(self.message), audio=audio, heard_from=heard_from))
        if self.state is ResponseState.DRAINING and self.playout.is_empty:
            self._step("fail" if self._error else "cut_short" if self.reason else "complete")
            self._close()

    def cancel(self, reason: str, now: float) -> None:
        """Stop: `turn_detected` (the caller speaks) or `client_cancelled`. History keeps what was heard."""
        heard_ms = self.playout.heard_ms(now)
        self.playout.drop()
        self.reason = reason
        self._step("cancel")
        self._close()
        self._keep_heard(heard_ms)

    def fail(self, code: str, message: str) -> None:
        """An engine gave up; audio still waiting goes out on time."""
        self.reason = code
        self._error = {"type": "server_error", "code": code, "message": message}
        if self.state is ResponseState.GENERATING:
            self.playout.is_complete = True
            self._step("end")
        else:
            self._step("fail")
            self._close()

    def since_origin(self, now: float) -> int:
        return max(0, round((now - self.origin) * 1000))

    def to_wire(self) -> dict[str, Any]:
        live = self.is_live
        error = self._error if self.state is ResponseState.FAILED else None
        details: dict[str, Any] | None = None
        if not live and self.reason:
            details = {"type": self.state.value, "reason": self.reason, **({"error": error} if error else {})}
        return {
            "id": self.id,
            "object": "realtime.response",
            "conversation_id": self.conversation_id,
            "status": "in_progress" if live else self.state.value,
            "status_details": details,
            "modalities": list(self.config.modalities),
            "voice": self.config.voice,
            "output_audio_format": self.config.output_format.name,
            "output": [] if live else [item.to_wire() for item in self._output],
            "usage": None if live else self.usage.to_wire(self.playout.sent_ms),
            **({} if live else {"metrics": self._metrics()}),
            **({"metadata": self.config.metadata} if self.config.metadata else {}),
        }

    def _keep_heard(self, heard_ms: float) -> None:
        if self.message and self.config.speaks:
            self.message.cut(heard_ms)
            if self.is_out_of_band:
                return
            self.send(
                ev.ItemTruncated(
                    item_id=self.message.id,
                    content_index=0,
                    audio_end_ms=round(heard_ms),
                    transcript=self.message.text,
                    unheard=self.message.unheard,
                )
            )

    def _tell_times(self, item: Message, since_ms: float, words: Sequence[SpokenText]) -> None:
        """Tell the client of words that it does not know the times of yet."""
        told = []
        for word in words if self.config.word_times else ():
            if (text := item.text[self._told : word.characters]).strip():
                times = {"start_ms": round(since_ms + word.begin_ms), "end_ms": round(since_ms + word.end_ms)}
                told.append({"text": text, **times})
                self._told = word.characters
        if told:
            self.send(ev.ReplyWordTimes(**self._where(item), words=told))

    def _metrics(self) -> dict[str, Any]:
        return self.metrics.to_wire() | ({"served_by": self.served_by} if self.served_by else {})

    def _note_first_token(self, now: float) -> None:
        if self.metrics.first_token_ms is None:
            self.metrics.first_token_ms = self.since_origin(now)

    def _open_message(self) -> Message:
        if self.message is None:
            self.message = Message(
                self.new_id("item"),
                Role.ASSISTANT,
                ItemStatus.IN_PROGRESS,
                spoken=self.config.speaks,
                author=self.author,
            )
            self._announce(self.message)
            self.send(ev.ContentPartAdded(**self._where(self.message), part=self._part("")))
        return self.message

    def _announce(self, item: Message | FunctionCall | McpItem) -> None:
        """Say that an output item began."""
        self._output.append(item)
        shown = {**item.to_wire(), **({"content": []} if isinstance(item, Message) else {})}
        self.send(ev.OutputItemAdded(response_id=self.id, output_index=len(self._output) - 1, item=shown))
        before = self.conversation.add(item)
        if not self.is_out_of_band:
            self.send(ev.ItemCreated(item=shown, previous_item_id=before))

    def _close(self) -> None:
        """The one end. Calls are closed with everything else, not when the model has written them: a client that acts
        on a call at once asks for the next response, which is refused while this one goes on."""
        for output_index, item in enumerate(self._output):
            item.status = ItemStatus.COMPLETED if self.state is ResponseState.COMPLETED else ItemStatus.INCOMPLETE
            if isinstance(item, Message):
                self._close_message(item)
            elif isinstance(item, FunctionCall):
                self.send(
                    ev.FunctionArgumentsDone(
                        **self._where(item), call_id=item.call_id, name=item.name, arguments=item.arguments
                    )
                )
            self.send(ev.OutputItemDone(response_id=self.id, output_index=output_index, item=item.to_wire()))
        self.send(ev.ResponseDone(response=self.to_wire()))

    def _close_message(self, item: Message) -> None:
        where = self._where(item)
        if self.config.speaks:
            self.send(ev.AudioTranscriptDone(**where, transcript=item.text))
            self.send(ev.AudioDone(**where))
        else:
            self.send(ev.TextDone(**where, text=item.text))
        self.send(ev.ContentPartDone(**where, part=self._part(item.text)))

    def _part(self, words: str) -> dict[str, Any]:
        # A client derives the modality from this: `audio` for a reply that is spoken.
        return {"type": "audio", "transcript": words} if self.config.speaks else {"type": "text", "text": words}

    def _where(self, item: Message | FunctionCall | McpItem) -> dict[str, Any]:
        """Fields that say which output item an event is about. Items compare by identity, and there are few."""
        return {"response_id": self.id, "item_id": item.id, "output_index": self._output.index(item)}

    def _step(self, name: str) -> None:
        self.state = step(RESPONSE_STEPS, self.state, name)
