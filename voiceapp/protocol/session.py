"""One realtime conversation: events, audio frames and results of work go in; events to send and work to start come out.

`Session` never waits, never reads a clock and never calls a model. Its owner passes `now` (seconds, any steady clock),
starts what `work_to_start` asks for, brings the results back, and calls `tick` at `next_timer`. The same inputs always
give the same events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voiceapp.errors import InvalidParameter, RemoteProtocolError
from voiceapp.formats import identifier
from voiceapp.protocol import events as ev
from voiceapp.protocol.answering import Answerer
from voiceapp.protocol.configuration import SessionConfig, merge, merge_response
from voiceapp.protocol.conversation import Conversation, Item, read_item
from voiceapp.protocol.listening import Hooks, Listener, response_is_wanted
from voiceapp.protocol.response import Response
from voiceapp.protocol.states import SESSION_STEPS, SessionState, step
from voiceapp.protocol.utterance import Utterance
from voiceapp.protocol.work import Recognize, RecognizeItem, TurnEnded, Work

FINISH_S = 15.0
"""Longest wait for work under way after `session.finish`; client libraries wait 20 s."""


class Session:
    """The state of one conversation."""

    def __init__(self, *, session_id: str, config: SessionConfig, new_id: Callable[[str], str] = identifier) -> None:
        self.id = session_id
        self.config = config
        self.conversation = Conversation()
        self.state = SessionState.ACTIVE
        self._new_id = new_id
        self._out: list[ev.ServerEvent] = []
        self._work: list[Work] = []
        self._answerer = Answerer(self.conversation, send=self._send, start=self._work.append, new_id=new_id)
        self._listener = Listener(
            config,
            Hooks(
                send=self._send,
                start=self._work.append,
                new_id=new_id,
                speech_started=self._speech_started,
                turn_committed=self._turn_committed,
                words_known=self._words_known,
                words_failed=self._words_failed,
            ),
        )
        self._items_unrecognized: set[str] = set()
        self._finish_at: float | None = None

    # ── What comes out ───────────────────────────────────────────────────────────────────────────────────────────────

    def events_to_send(self) -> list[ev.ServerEvent]:
        """Events since the last call, in order, each with its `event_id`."""
        out = self._out[:]
        self._out.clear()
        return out

    def work_to_start(self) -> list[Work]:
        """Work since the last call, in order."""
        work = self._work[:]
        self._work.clear()
        return work

    def records(self) -> list[TurnEnded]:
        """Finished exchanges since the last call; a later record of the same ordinal replaces an earlier one."""
        return self._answerer.books.take()

    def next_timer(self) -> float | None:
        """When `tick` must be called, if nothing else happens before."""
        live = self._answerer.live
        times = (
            live.playout.next_due() if live else None,
            self._listener.stall_due(),
            self._idle_due(),
            self._finish_at,
        )
        return min((time for time in times if time is not None), default=None)

    @property
    def is_finished(self) -> bool:
        return self.state is SessionState.FINISHED

    @property
    def response(self) -> Response | None:
        """The latest answer, live or ended."""
        return self._answerer.response

    @property
    def turns(self) -> int:
        """Answers that have ended."""
        return self._answerer.books.turns

    @property
    def has_room_for_audio(self) -> bool:
        """The answer in progress can take more speech; synthesis waits while it cannot."""
        live = self._answerer.live
        return live is None or live.playout.has_room

    # ── What comes in from the client ────────────────────────────────────────────────────────────────────────────────

    def open(self, now: float) -> None:
        """The server speaks first."""
        self._send(ev.SessionCreated(session=self._session_on_wire()))

    def receive(self, event: ev.ClientEvent, now: float) -> None:
        """One client event other than audio, which arrives through `hear`. Never raises for what a client may send."""
        if self.is_finished:
            return
        if self.state is SessionState.FINISHING:
            self.refuse(RemoteProtocolError("The session is finishing; nothing more is accepted."), event.event_id)
            return
        try:
            self._RECEIVERS[type(event)](self, event, now)
        except (InvalidParameter, RemoteProtocolError) as refused:
            self.refuse(refused, event.event_id)
        self._advance(now)

    def refuse(self, error: InvalidParameter | RemoteProtocolError, about: str | None = None) -> None:
        """Tell the client that an event was not accepted; the session lives on."""
        code = "invalid_value" if isinstance(error, InvalidParameter) else error.code
        self._send(ev.ErrorEvent(code=code, message=error.message, param=error.param, about=about))

    def hear(self, frame: NDArray[np.float32], probability: float, now: float) -> None:
        """One frame of 512 samples at 16 kHz and its speech probability."""
        if self.state is SessionState.ACTIVE:
            self._listener.hear(frame, probability, now)
            self._advance(now)

    def tick(self, now: float) -> None:
        """A timer is due: send audio, end a stalled turn, speak up after silence, give up finishing."""
        if _is_due(self._listener.stall_due(), now):
            self._listener.end_turn(now)
        if _is_due(self._idle_due(), now):
            self._prompt_idle_caller(now)
        if _is_due(self._finish_at, now):
            self._answerer.cancel("client_cancelled", now)
            self._drained()
        self._advance(now)

    def close(self, now: float) -> None:
        """The connection is gone: end what is under way, for the books. Whatever comes afterwards is ignored."""
        self._answerer.cancel("client_cancelled", now)
        self._end("close")

    # ── What comes back from work ────────────────────────────────────────────────────────────────────────────────────

    def turn_judged(self, item_id: str, version: int, probability: float, now: float) -> None:
        """The turn model's answer to `JudgeTurn`."""
        self._listener.judged(item_id, version, probability, now)
        self._advance(now)

    def recognized(self, work: Recognize, words: str, now: float) -> None:
        """The answer to `Recognize`; no words when nobody spoke."""
        self._listener.recognized(work, words, now)
        self._advance(now)

    def recognition_failed(self, work: Recognize, code: str, message: str, now: float) -> None:
        """`Recognize` could not be done."""
        self._listener.recognition_failed(work, code, message, now)
        self._advance(now)

    def item_recognized(self, item_id: str, words: str, now: float) -> None:
        """The answer to `RecognizeItem`; no words when there were none."""
        if item_id in self._items_unrecognized:
            self._items_unrecognized.remove(item_id)
            self._write_words(item_id, words)
            self._advance(now)

    def item_recognition_failed(self, item_id: str, code: str, message: str, now: float) -> None:
        """`RecognizeItem` could not be done; an answer that waits for the words fails."""
        if item_id in self._items_unrecognized:
            self._items_unrecognized.remove(item_id)
            self._say_words_failed(item_id, code, message)
            self._answerer.words_failed(code, message, now)
            self._advance(now)

    def answer_text(self, response_id: str, delta: str, now: float) -> None:
        """More words of the answer."""
        if response := self._answerer.generating(response_id):
            response.add_text(delta, now)

    def answer_call(self, response_id: str, index: int, call_id: str, name: str, arguments: str, now: float) -> None:
        """A fragment of function call number `index`; the first one names it."""
        if response := self._answerer.generating(response_id):
            response.add_call(index, call_id, name, arguments, now)

    def answer_audio(self, response_id: str, pcm: bytes, now: float) -> None:
        """More speech of the answer, in the output format."""
        if response := self._answerer.generating(response_id):
            response.add_audio(pcm, now)
            self._advance(now)

    def answer_spoken(self, response_id: str, characters: int) -> None:
        """The audio so far speaks the first `characters` of the answer."""
        if response := self._answerer.generating(response_id):
            response.mark_spoken(characters)

    def answer_used(self, response_id: str, input_tokens: int, output_tokens: int) -> None:
        """Tokens as the chat model counted them."""
        if response := self._answerer.generating(response_id):
            response.usage.input_text = input_tokens
            response.usage.output_text = output_tokens

    def answer_ended(self, response_id: str, finish_reason: str, now: float) -> None:
        """All words and audio of the answer were handed over."""
        if response := self._answerer.generating(response_id):
            response.end(finish_reason)
            self._advance(now)

    def answer_failed(self, response_id: str, code: str, message: str, now: float) -> None:
        """The answer cannot be completed."""
        if response := self._answerer.generating(response_id):
            self._answerer.fail(response, code, message, now)
            self._advance(now)

    # ── Client events ────────────────────────────────────────────────────────────────────────────────────────────────

    def _update(self, event: ev.SessionUpdate, now: float) -> None:
        self.config = merge(self.config, event.session)
        self._send(ev.SessionUpdated(session=self._session_on_wire()))
        self._listener.configure(self.config, now)

    def _commit(self, event: ev.AudioCommit, now: float) -> None:
        self._listener.commit(now)

    def _clear(self, event: ev.AudioClear, now: float) -> None:
        self._listener.clear(now)
        self._send(ev.AudioCleared())

    def _append_image(self, event: ev.ImageAppend, now: float) -> None:
        raise RemoteProtocolError(
            f"The model '{self.config.model}' has no eyes: it cannot take images.",
            code="image_not_supported",
            param="image",
        )

    def _create_item(self, event: ev.ItemCreate, now: float) -> None:
        item, audio = read_item(event.item, self._new_id("item"))
        if self._listener.holds(item.id):
            raise InvalidParameter("This is the id of what the caller is saying.", param="item.id")
        before = self.conversation.add(item, event.previous_item_id)
        self._send(ev.ItemCreated(item=item.to_wire(), previous_item_id=before))
        if audio is not None:
            self._items_unrecognized.add(item.id)
            self._work.append(RecognizeItem(item.id, audio))

    def _retrieve_item(self, event: ev.ItemRetrieve, now: float) -> None:
        self._send(ev.ItemRetrieved(item=self.conversation.find(event.item_id).to_wire()))

    def _delete_item(self, event: ev.ItemDelete, now: float) -> None:
        item = self.conversation.find(event.item_id)
        live = self._answerer.live
        if live and live.owns(item):
            raise RemoteProtocolError(
                "This item is being written; cancel the response first.", code="item_in_progress", param="item_id"
            )
        self.conversation.remove(item)
        self._send(ev.ItemDeleted(item_id=item.id))

    def _truncate_item(self, event: ev.ItemTruncate, now: float) -> None:
        item = self.conversation.find(event.item_id)
        if item.role != "assistant" or item.type != "message" or not item.spoken:
            raise InvalidParameter("Only a spoken answer can be truncated.", param="item_id")
        if event.content_index != 0:
            raise InvalidParameter("content_index must be 0.", param="content_index")
        if self.response and self.response.message is item:
            self._answerer.cancel("client_cancelled", now)
        item.cut(event.audio_end_ms)
        self._send(
            ev.ItemTruncated(
                item_id=item.id,
                content_index=0,
                audio_end_ms=event.audio_end_ms,
                transcript=item.text,
                unheard=item.unheard,
            )
        )
        self._answerer.books.truncated(item)

    def _create_response(self, event: ev.ResponseCreate, now: float) -> None:
        if self._answerer.live:
            raise RemoteProtocolError(
                "The conversation already has an active response; cancel it or wait for response.done.",
                code="conversation_already_has_active_response",
            )
        if self._listener.is_speech_open:
            raise RemoteProtocolError("The user is speaking; the answer follows by itself.", code="user_is_speaking")
        self._answerer.begin(merge_response(self.config, event.response), now)

    def _cancel(self, event: ev.ResponseCancel, now: float) -> None:
        live = self._answerer.live
        if not live or event.response_id not in (None, live.id):
            raise RemoteProtocolError("There is no active response to cancel.", code="response_cancel_not_active")
        self._answerer.owes_answer = False
        self._answerer.cancel("client_cancelled", now)

    def _finish(self, event: ev.SessionFinish, now: float) -> None:
        self._listener.finish(now)
        self.state = step(SESSION_STEPS, self.state, "finish")
        self._finish_at = now + FINISH_S

    _RECEIVERS: dict[type[ev.ClientEvent], Any] = {  # noqa: RUF012 - a table, never changed
        ev.SessionUpdate: _update,
        ev.AudioCommit: _commit,
        ev.AudioClear: _clear,
        ev.ImageAppend: _append_image,
        ev.ItemCreate: _create_item,
        ev.ItemRetrieve: _retrieve_item,
        ev.ItemDelete: _delete_item,
        ev.ItemTruncate: _truncate_item,
        ev.ResponseCreate: _create_response,
        ev.ResponseCancel: _cancel,
        ev.SessionFinish: _finish,
    }

    # ── What the listener reports ────────────────────────────────────────────────────────────────────────────────────

    def _speech_started(self, now: float) -> None:
        settings = self.config.turn_detection
        if settings and settings.interrupt_response:
            self._answerer.cancel("turn_detected", now)

    def _turn_committed(self, utterance: Utterance, now: float) -> None:
        item = Item(id=utterance.item_id, role="user", spoken=True)
        before = self.conversation.add(item)
        self._answerer.turn_committed(utterance)
        self._send(ev.AudioCommitted(item_id=item.id, previous_item_id=before))
        self._send(ev.ItemCreated(item=item.to_wire(), previous_item_id=before))

    def _words_known(self, utterance: Utterance, now: float) -> None:
        is_kept = self._write_words(utterance.item_id, utterance.words or "")
        if is_kept and utterance.words:
            self._answerer.turn_has_words(wants_answer=response_is_wanted(self.config.turn_detection))
        else:
            self._answerer.turn_is_void(utterance)

    def _words_failed(self, utterance: Utterance, code: str, message: str, now: float) -> None:
        self._say_words_failed(utterance.item_id, code, message)
        self._answerer.turn_is_void(utterance)
        self._answerer.words_failed(code, message, now)

    def _say_words_failed(self, item_id: str, code: str, message: str) -> None:
        error = {"type": "server_error", "code": code, "message": message}
        self._send(ev.TranscriptionFailed(item_id=item_id, error=error))

    def _write_words(self, item_id: str, words: str) -> bool:
        """Put recognised words into their item; False when it was deleted meanwhile."""
        try:
            self.conversation.find(item_id).text = words
        except InvalidParameter:
            return False
        self._send(ev.TranscriptionCompleted(item_id=item_id, transcript=words))
        return True

    # ── After every step ─────────────────────────────────────────────────────────────────────────────────────────────

    def _advance(self, now: float) -> None:
        if self.is_finished:
            return
        self._answerer.advance(now, is_hurried=self.state is SessionState.FINISHING)
        if self._answerer.owes_answer and self._is_quiet:
            self._answerer.begin(self.config, now)
        if self._is_settled:
            self._answerer.generate(self.config.max_history_turns)
        if self.state is SessionState.FINISHING and self._is_quiet:
            self._drained()

    @property
    def _is_settled(self) -> bool:
        """The words of everything that was said are known."""
        return self._listener.is_settled and not self._items_unrecognized

    @property
    def _is_quiet(self) -> bool:
        """Nobody speaks, and nothing is under way."""
        return self._is_settled and not self._answerer.live and not self._listener.is_speech_open

    def _drained(self) -> None:
        """Finishing ends when nothing is under way any more."""
        self._end("drained")
        self._send(ev.SessionFinished())

    def _end(self, name: str) -> None:
        self.state = step(SESSION_STEPS, self.state, name)
        self._finish_at = None
        self._items_unrecognized.clear()
        self._listener.close()

    def _idle_due(self) -> float | None:
        settings = self.config.turn_detection
        if settings is None or settings.idle_timeout_ms is None:
            return None
        if self.state is not SessionState.ACTIVE or not self._is_quiet:
            return None
        if self.response is None or self.response.is_idle_prompt:  # ask once, and not before the first exchange
            return None
        return max(self._answerer.ended_at, self._listener.quiet_since) + settings.idle_timeout_ms / 1000

    def _prompt_idle_caller(self, now: float) -> None:
        settings = self.config.turn_detection
        item_id = self._new_id("item")
        heard_ms = self._listener.heard_ms
        since_ms = max(0, heard_ms - (settings.idle_timeout_ms or 0 if settings else 0))
        self._send(ev.IdleTimeout(audio_start_ms=since_ms, audio_end_ms=heard_ms, item_id=item_id))
        self._answerer.begin(self.config, now, is_idle_prompt=True)

    def _send(self, event: ev.ServerEvent) -> None:
        self._out.append(replace(event, event_id=self._new_id("event")))

    def _session_on_wire(self) -> dict[str, Any]:
        return {"id": self.id, "object": "realtime.session", **self.config.to_wire()}


def _is_due(time: float | None, now: float) -> bool:
    return time is not None and now >= time
