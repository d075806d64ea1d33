"""One answer: the order of its events, its audio on time, and exactly one end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from voiceapp.protocol import events as ev
from voiceapp.protocol.audio import wav_header
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.conversation import Conversation, Item
from voiceapp.protocol.playout import Playout
from voiceapp.protocol.states import LIVE, RESPONSE_STEPS, ResponseState, step
from voiceapp.protocol.utterance import Utterance

AUDIO_TOKEN_MS = 40
"""One audio token of usage: hosted models of this family count 25 a second."""


@dataclass(slots=True)
class Metrics:
    """When the stages of an answer were reached, in ms after the caller's last speech sample (or their request)."""

    end_of_turn_ms: int | None = None
    recognition_ms: int | None = None
    first_token_ms: int | None = None
    first_audio_ms: int | None = None

    def to_wire(self) -> dict[str, int | None]:
        return {
            "end_of_turn_ms": self.end_of_turn_ms,
            "recognition_ms": self.recognition_ms,
            "first_token_ms": self.first_token_ms,
            "first_audio_ms": self.first_audio_ms,
        }


@dataclass(slots=True)
class Usage:
    """Tokens of one answer: text as the chat model counted, audio by length."""

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
    """An answer under way. Methods append the events they cause through `send`."""

    id: str
    conversation_id: str
    config: SessionConfig
    conversation: Conversation
    send: Callable[[ev.ServerEvent], None]
    new_id: Callable[[str], str]
    origin: float
    """The moment metrics count from: last speech sample, or the request."""
    not_before: float = -math.inf
    """When the caller has heard the answer before."""
    is_idle_prompt: bool = False
    """Nobody asked: the caller was silent for long."""
    state: ResponseState = ResponseState.WAITING
    metrics: Metrics = field(default_factory=Metrics)
    usage: Usage = field(default_factory=Usage)
    message: Item | None = None
    reason: str | None = None
    """Why it ended other than completed."""
    playout: Playout = field(init=False)
    _output: list[Item] = field(default_factory=list)
    _calls: dict[int, Item] = field(default_factory=dict)
    """Function calls by the model's own number."""

    def __post_init__(self) -> None:
        self.playout = Playout(self.config.output_format, not_before=self.not_before)

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    def owns(self, item: Item) -> bool:
        """The item is part of this answer."""
        return item in self._output

    def begin(self) -> None:
        """Say that an answer will come."""
        self.send(ev.ResponseCreated(response=self.to_wire()))

    def generate(self) -> None:
        """The model starts to write."""
        self._step("generate")

    def note_turn(self, turn: Utterance) -> None:
        """This answers a spoken turn: take over its length and times."""
        self.usage.input_audio_ms = turn.length_ms
        if turn.origin is not None:
            self.origin = turn.origin
        if turn.ended_at is not None:
            self.metrics.end_of_turn_ms = self.since_origin(turn.ended_at)
        if turn.recognized_at is not None:
            self.metrics.recognition_ms = self.since_origin(turn.recognized_at)

    def add_text(self, delta: str, now: float) -> None:
        """More words of the answer."""
        self._note_first_token(now)
        item = self._open_message()
        item.text += delta
        event = ev.AudioTranscriptDelta if self.config.speaks else ev.TextDelta
        self.send(event(**self._where(item), delta=delta))

    def add_audio(self, pcm: bytes, now: float) -> None:
        """More speech, in the output format, spoken after all that came before."""
        self._open_message()
        if self.config.output_format.name == "wav" and not self.playout.pushed_ms:
            pcm = wav_header(self.config.output_format.sample_rate_hz) + pcm
        self.playout.push(pcm, now)

    def mark_spoken(self, characters: int) -> None:
        """All audio up to here speaks the first `characters` of the answer."""
        if self.message:
            self.message.marks.append((characters, self.playout.pushed_ms))

    def add_call(self, index: int, call_id: str, name: str, arguments: str, now: float) -> None:
        """A fragment of the model's function call number `index`; the first fragment names it."""
        self._note_first_token(now)
        item = self._calls.get(index)
        if item is None:
            item = self._calls[index] = Item(
                id=self.new_id("item"),
                type="function_call",
                role="assistant",
                status="in_progress",
                call_id=call_id or self.new_id("call"),
                name=name,
            )
            self._announce(item)
        item.name = item.name or name
        if arguments:
            item.arguments += arguments
            self.send(ev.FunctionArgumentsDelta(**self._where(item), call_id=item.call_id, delta=arguments))

    def end(self, finish_reason: str) -> None:
        """The model wrote all it will; audio still waiting goes out on time."""
        self.playout.is_complete = True
        self.reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(finish_reason)
        self._step("end")

    def advance(self, now: float) -> None:
        """Send the audio that is due, and the end when everything was sent."""
        audio = self.playout.take(now)
        if audio and self.message:
            if self.metrics.first_audio_ms is None:
                self.metrics.first_audio_ms = self.since_origin(now)
            self.send(ev.AudioDelta(**self._where(self.message), audio=audio))
        if self.state is ResponseState.DRAINING and self.playout.is_empty:
            self._step("cut_short" if self.reason else "complete")
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
        """An engine gave up."""
        self.reason = code
        self.playout.drop()
        self._step("fail")
        self._close(error={"type": "server_error", "code": code, "message": message})

    def since_origin(self, now: float) -> int:
        return max(0, round((now - self.origin) * 1000))

    def to_wire(self, error: dict[str, Any] | None = None) -> dict[str, Any]:
        live = self.is_live
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
            **({} if live else {"metrics": self.metrics.to_wire()}),
        }

    def _keep_heard(self, heard_ms: float) -> None:
        if self.message and self.config.speaks:
            self.message.cut(heard_ms)
            self.send(
                ev.ItemTruncated(
                    item_id=self.message.id,
                    content_index=0,
                    audio_end_ms=round(heard_ms),
                    transcript=self.message.text,
                    unheard=self.message.unheard,
                )
            )

    def _note_first_token(self, now: float) -> None:
        if self.metrics.first_token_ms is None:
            self.metrics.first_token_ms = self.since_origin(now)

    def _open_message(self) -> Item:
        if self.message is None:
            self.message = Item(
                id=self.new_id("item"), role="assistant", status="in_progress", spoken=self.config.speaks
            )
            self._announce(self.message)
            self.send(ev.ContentPartAdded(**self._where(self.message), part=self._part("")))
        return self.message

    def _announce(self, item: Item) -> None:
        """Say that an output item began."""
        self._output.append(item)
        shown = {**item.to_wire(), **({"content": []} if item.type == "message" else {})}
        self.send(ev.OutputItemAdded(response_id=self.id, output_index=len(self._output) - 1, item=shown))
        before = self.conversation.add(item)
        self.send(ev.ItemCreated(item=shown, previous_item_id=before))

    def _close(self, error: dict[str, Any] | None = None) -> None:
        """The one end. Calls are closed with everything else, not when the model has written them: a client that acts
        on a call at once asks for the next answer, which is refused while this one goes on."""
        for output_index, item in enumerate(self._output):
            item.status = "completed" if self.state is ResponseState.COMPLETED else "incomplete"
            if item is self.message:
                self._close_message(item)
            else:
                self.send(
                    ev.FunctionArgumentsDone(
                        **self._where(item), call_id=item.call_id, name=item.name, arguments=item.arguments
                    )
                )
            self.send(ev.OutputItemDone(response_id=self.id, output_index=output_index, item=item.to_wire()))
        self.send(ev.ResponseDone(response=self.to_wire(error)))

    def _close_message(self, item: Item) -> None:
        where = self._where(item)
        if self.config.speaks:
            self.send(ev.AudioTranscriptDone(**where, transcript=item.text))
            self.send(ev.AudioDone(**where))
        else:
            self.send(ev.TextDone(**where, text=item.text))
        self.send(ev.ContentPartDone(**where, part=self._part(item.text)))

    def _part(self, words: str) -> dict[str, Any]:
        # A client derives the modality from this: `audio` for an answer that is spoken.
        return {"type": "audio", "transcript": words} if self.config.speaks else {"type": "text", "text": words}

    def _where(self, item: Item) -> dict[str, Any]:
        """Fields that say which output item an event is about. Items compare by identity, and there are few."""
        return {"response_id": self.id, "item_id": item.id, "output_index": self._output.index(item)}

    def _step(self, name: str) -> None:
        self.state = step(RESPONSE_STEPS, self.state, name)
