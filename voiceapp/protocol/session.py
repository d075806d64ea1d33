"""One realtime conversation: events, audio frames and results of work go in; events to send and work to start come out.

`Session` never waits, never reads a clock and never calls a model. Its owner passes `now` (seconds, any steady clock),
starts what `work_to_start` asks for, brings the results back by `done`, and calls `tick` at `next_timer`. The same
inputs always give the same events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voiceapp.errors import InvalidParameter, RemoteProtocolError
from voiceapp.formats import identifier
from voiceapp.protocol import work as wk
from voiceapp.protocol.configuration import SessionConfig, merge, merge_response
from voiceapp.protocol.conversation import Conversation
from voiceapp.protocol.hearing.listening import Listener, response_is_wanted
from voiceapp.protocol.hearing.turn_words import Hooks
from voiceapp.protocol.hearing.utterance import Utterance
from voiceapp.protocol.item_events import ItemEvents
from voiceapp.protocol.items import Message, Role
from voiceapp.protocol.speaking.out_of_band import out_of_band_context
from voiceapp.protocol.speaking.responding import Responder, Sentence
from voiceapp.protocol.speaking.response import Response
from voiceapp.protocol.states import SESSION_STEPS, CallsState, EchoRisk, SessionState, step
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import (
    OfReply,
    PlayoutCut,
    RecognitionFailed,
    Recognized,
    Result,
    ToolsListed,
    TurnEnded,
    TurnJudged,
)

GREETING_S = 0.3
"""Time for the client to set up the session before its first words are said."""
MOST_NOTICES = 5
"""Sentences of operators that may wait to be said."""
ENDING_S = 20.0
"""Time before the longest duration of a guest's session is over in which they are told so; at most half of it."""
FINISH_S = 15.0
"""Longest wait for work under way after `session.finish`; client libraries wait 20 s."""


class Session:
    """The state of one conversation."""

    def __init__(
        self,
        *,
        session_id: str,
        config: SessionConfig,
        new_id: Callable[[str], str] = identifier,
        says_not_understood: bool = True,
        speculates: bool = False,
        replies_in_english: bool = False,
        fills_waits: bool = True,
    ) -> None:
        """`fills_waits`: the caller is told of functions that take long; `says_not_understood`: unclear speech gets a
        response; `speculates`: replies are begun before turns end; `replies_in_english`: the model knows no other
        language, and callers in one are told so.
        """
        self.id = session_id
        self._speculates = speculates
        self._fills_waits = fills_waits
        self._says_not_understood = says_not_understood
        self.config = config
        self.conversation = Conversation()
        self.state = SessionState.ACTIVE
        self._new_id = new_id
        self._out: list[ev.ServerEvent | PlayoutCut] = []
        self._work: list[wk.Work] = []
        self._responder = Responder(
            self.conversation,
            send=self._send,
            start=self._work.append,
            cut=self._cut_playout,
            new_id=new_id,
            replies_in_english=replies_in_english,
        )
        self._listener = Listener(
            config,
            self._responder,
            Hooks(
                send=self._send,
                start=self._work.append,
                new_id=new_id,
                turn_committed=self._turn_committed,
                words_known=self._words_known,
                words_failed=self._words_failed,
                words_expected=self._words_expected,
                turn_goes_on=self._turn_goes_on,
                speech_resumed=self._responder.speech_resumed,
            ),
        )
        work = self._work.append
        self._items = ItemEvents(
            self.conversation, self._responder, self._listener, send=self._send, start=work, new_id=new_id
        )
        self.reminders = self._responder.reminders
        self._first_words = ""
        self._greet_at: float | None = None
        self._finish_at: float | None = None
        self._ending_at: float | None = None
        self._notices: list[Sentence] = []

    # ── What comes out ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def has_news(self) -> bool:
        return bool(self._out or self._work)

    def events_to_send(self) -> list[ev.ServerEvent | PlayoutCut]:
        """Events since the last call, in order, each with its `event_id`, and where playout is to be cut."""
        out, self._out = self._out, []
        return out

    def work_to_start(self) -> list[wk.Work]:
        """Work since the last call, in order."""
        work = self._work[:]
        self._work.clear()
        return work

    def records(self) -> list[TurnEnded]:
        """Finished exchanges since the last call; a later record of the same ordinal replaces an earlier one."""
        return self._responder.turn_log.take()

    def next_timer(self) -> float | None:
        """Time at which `tick` must be called, if nothing else happens before."""
        live = self._responder.live
        times = (
            live.playout.next_due() if live else None,
            self._listener.stall_due(),
            self._listener.interruptions.ducking.hold_due(),
            self._idle_due(),
            self._reminder_due(),
            self._filler_due(),
            self._ending_due(),
            self._notice_due(),
            self._greet_at,
            self._finish_at,
        )
        return min((time for time in times if time is not None), default=None)

    @property
    def is_finished(self) -> bool:
        return self.state is SessionState.FINISHED

    @property
    def response(self) -> Response | None:
        """The latest response, live or ended."""
        return self._responder.response

    @property
    def turns(self) -> int:
        """Responses that have ended."""
        return self._responder.turn_log.turns

    @property
    def has_room_for_audio(self) -> bool:
        """The response in progress can take more speech; synthesis waits while it cannot."""
        live = self._responder.live
        return live is None or live.playout.has_room

    # ── What comes in from the client ────────────────────────────────────────────────────────────────────────────────

    def open(self, now: float, first_words: str = "", *, guest_lasts_s: float | None = None) -> None:
        """The server speaks first; `first_words` are heard unless the client continues a conversation. A guest, whose
        session `guest_lasts_s`, is told before it ends."""
        if guest_lasts_s is not None:
            self._ending_at = now + guest_lasts_s - min(ENDING_S, guest_lasts_s / 2)
        self._send(ev.SessionCreated(session=self._session_on_wire()))
        self._items.list_tools(self.config)
        if first_words and not self.config.listens_only:
            self._first_words, self._greet_at = first_words, now + GREETING_S

    @property
    def is_untouched(self) -> bool:
        """Nothing was said but first words."""
        items = self.conversation.items
        return all(isinstance(item, Message) and item.role is Role.ASSISTANT for item in items)

    def answer_as(
        self, config: SessionConfig, first_words: str, now: float, *, speculates: bool, replies_in_english: bool
    ) -> None:
        """Let another agent answer, before anything was said to the one before."""
        self._speculates, self._responder.replies_in_english = speculates, replies_in_english
        self.config = config
        if self.response is None:
            self._first_words, self._greet_at = first_words, now + GREETING_S if first_words else None

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

    def notify(self, words: Sentence) -> bool:
        """Say a sentence once both sides are silent, as an operator wants; no model reads it. False if it will not."""
        will_say = len(self._notices) < MOST_NOTICES and not self.config.listens_only
        if will_say:
            self._notices.append(words)
        return will_say

    def hear(self, frame: NDArray[np.float32], probability: float, now: float, echo: EchoRisk = EchoRisk.NONE) -> None:
        """One frame of 512 samples at 16 kHz and its speech probability."""
        if self.state is SessionState.ACTIVE:
            self._listener.hear(frame, probability, now, echo)
            self._advance(now)

    def tick(self, now: float) -> None:
        """A timer is due: send audio, end a stalled turn, speak up after silence, give up finishing."""
        if _is_due(self._listener.stall_due(), now):
            self._listener.end_turn(now)
        if _is_due(self._listener.interruptions.ducking.hold_due(), now):
            self._listener.interruptions.ducking.hold(now)
        if _is_due(self._reminder_due(), now):
            self._responder.remind(self.config, now)
        if _is_due(self._filler_due(), now):
            self._responder.fill(self.config, now)
        if _is_due(self._ending_due(), now):
            self._ending_at = None
            self._responder.tell_of_end(self.config, now)
        if _is_due(self._notice_due(), now):
            self._responder.say_aside(self._notices.pop(0), self.config, now)
        if _is_due(self._greet_at, now):
            self._greet(now)
        if _is_due(self._idle_due(), now):
            self._prompt_idle_caller(now)
        if _is_due(self._finish_at, now):
            self._responder.cancel("client_cancelled", now)
            self._drained()
        self._advance(now)

    def close(self, now: float) -> None:
        """The connection is gone: end what is under way, for its record. Whatever comes afterwards is ignored."""
        self._responder.cancel("client_cancelled", now)
        self._end("close")

    # ── What comes back from work ────────────────────────────────────────────────────────────────────────────────────

    def done(self, result: Result, now: float) -> None:
        """A result of work that `work_to_start` asked for; one that comes too late is ignored."""
        if isinstance(result, OfReply):
            self._responder.take(result, now)
        elif isinstance(result, TurnJudged):
            self._listener.judged(result, now)
        elif isinstance(result, Recognized):
            self._listener.recognized(result, now)
        elif isinstance(result, RecognitionFailed):
            self._listener.recognition_failed(result, now)
        elif isinstance(result, ToolsListed):
            self._items.listed(result)
        else:
            self._items.take(result, now)
        self._advance(now)

    # ── Client events ────────────────────────────────────────────────────────────────────────────────────────────────

    def _update(self, event: ev.SessionUpdate, now: float) -> None:
        self.config = merge(self.config, event.session)
        self._send(ev.SessionUpdated(session=self._session_on_wire()))
        self._listener.configure(self.config, now)
        self._items.list_tools(self.config)

    def _clear(self, event: ev.AudioClear, now: float) -> None:
        self._listener.clear(now)
        self._send(ev.AudioCleared())

    def _append_image(self, event: ev.ImageAppend, now: float) -> None:
        raise RemoteProtocolError(
            f"The model '{self.config.model}' does not accept images. Remove the image or choose a model with image "
            "input.",
            code="image_not_supported",
            param="image",
        )

    def _create_response(self, event: ev.ResponseCreate, now: float) -> None:
        self._responder.require_responses(self.config)
        is_speech_open = self._listener.is_speech_open and self._listener.doubtful is None
        is_busy = self._responder.live or is_speech_open
        if is_busy and self._responder.calls.state is CallsState.ANSWERED and not event.response:
            self._responder.owes_response = True  # the output of a function waits until both are silent
            return
        self._responder.require_free(is_speech_open=is_speech_open)
        context = out_of_band_context(event.response, self.conversation, self._new_id)
        self._responder.begin(merge_response(self.config, event.response), now, context=context)

    def _finish(self, event: ev.SessionFinish, now: float) -> None:
        self._listener.finish(now)
        self.state = step(SESSION_STEPS, self.state, "finish")
        self._finish_at = now + FINISH_S

    _RECEIVERS: dict[type[ev.ClientEvent], Any] = {  # noqa: RUF012 - a table, never changed
        ev.SessionUpdate: _update,
        ev.AudioCommit: lambda self, event, now: self._listener.commit(now),
        ev.AudioClear: _clear,
        ev.ImageAppend: _append_image,
        ev.ItemCreate: lambda self, event, now: self._items.create(event, self.config.input_format),
        ev.ItemRetrieve: lambda self, event, now: self._items.retrieve(event),
        ev.ItemDelete: lambda self, event, now: self._items.delete(event),
        ev.ItemTruncate: lambda self, event, now: self._items.truncate(event, now),
        ev.ResponseCreate: _create_response,
        ev.ResponseCancel: lambda self, event, now: self._responder.cancel_on_request(event.response_id, now),
        ev.RemindersRestore: lambda self, event, now: self.reminders.restore(event.reminders, now),
        ev.SessionFinish: _finish,
    }

    # ── What the listener reports ────────────────────────────────────────────────────────────────────────────────────

    def _config_after(self, turn: Utterance) -> SessionConfig:
        """Return the settings with the language of a turn, unless the client has set one, or the caller is asked to go
        on in English."""
        is_set = self.config.transcription_language and not self.config.is_language_noted
        if not turn.language or is_set or not self._responder.knows_language(turn.language):
            return self.config
        return replace(self.config, transcription_language=turn.language, is_language_noted=True)

    def _turn_committed(self, utterance: Utterance, now: float) -> None:
        item = Message(utterance.item_id, spoken=True)
        is_known, before = self.conversation.before(item.id)
        if not is_known:
            before = self.conversation.add(item)
        self._responder.turn_committed(utterance)
        self._send(ev.AudioCommitted(item_id=item.id, previous_item_id=before))
        if not is_known:
            self._send(ev.ItemCreated(item=item.to_wire(), previous_item_id=before))

    def _turn_goes_on(self, utterance: Utterance, at: float, now: float) -> bool:
        settings = self.config.turn_detection
        is_free = settings is not None and settings.interrupt_response and response_is_wanted(self.config)
        # Clients that know nothing of this server add the transcripts of an item up.
        return is_free and self.config.interruptions == "duck" and self._responder.take_back(utterance, at, now)

    def _words_known(self, utterance: Utterance, now: float) -> None:
        language = utterance.language or self.config.transcription_language
        is_kept = self._items.write_words(utterance.item_id, utterance.words or "", language)
        if is_kept:
            self.config = self._config_after(utterance)
            self._listener.note_language(self.config)
        if is_kept and utterance.words:
            self._responder.turn_has_words(utterance, self.config, wants_response=response_is_wanted(self.config))
        elif is_kept:
            self._not_understood(utterance)
        else:
            self._responder.turn_is_void(utterance)

    def _words_expected(self, utterance: Utterance) -> None:
        if self._speculates and response_is_wanted(self.config) and self._is_settled:
            self._responder.speculate(utterance, self._config_after(utterance))

    def _not_understood(self, turn: Utterance) -> None:
        wants_response = self._says_not_understood and response_is_wanted(self.config)
        is_told = self._says_not_understood and turn.is_clear_speech
        self._responder.turn_was_not_understood(turn, is_told=is_told, wants_response=wants_response)

    def _words_failed(self, utterance: Utterance, code: str, message: str, now: float) -> None:
        self._items.say_words_failed(utterance.item_id, code, message)
        if self._responder.words_failed(code, message, now):
            self._responder.turn_is_void(utterance)
        else:
            self._not_understood(utterance)

    # ── After every step ─────────────────────────────────────────────────────────────────────────────────────────────

    def _advance(self, now: float) -> None:
        if self.is_finished:
            return
        self._responder.advance(now, is_hurried=self.state is SessionState.FINISHING)
        if self._responder.owes_response and self._is_quiet:
            self._responder.begin(self.config, now)
        if self._is_settled:
            self._responder.generate(self.config.max_history_turns)
        self._responder.tell_of_reminders(now)
        if self.state is SessionState.FINISHING and self._is_quiet:
            self._drained()

    @property
    def _is_settled(self) -> bool:
        """The words of everything that was said are known."""
        return self._listener.is_settled and self._items.is_settled

    @property
    def _is_quiet(self) -> bool:
        """The caller does not speak, and nothing is under way."""
        return self._is_settled and not self._responder.live and not self._listener.is_speech_open

    def _drained(self) -> None:
        """Finishing ends when nothing is under way any more."""
        self._end("drained")
        self._send(ev.SessionFinished())

    def _end(self, name: str) -> None:
        self.state = step(SESSION_STEPS, self.state, name)
        self._finish_at = None
        self._items.close()
        self._listener.close()

    def _reminder_due(self) -> float | None:
        return self.reminders.next_due() if self.state is SessionState.ACTIVE and self._is_quiet else None

    def _filler_due(self) -> float | None:
        is_wanted = self._fills_waits and self.config.speaks and response_is_wanted(self.config)
        if not is_wanted or self.state is not SessionState.ACTIVE or not self._is_quiet:
            return None
        return self._responder.calls.due

    def _notice_due(self) -> float | None:
        is_heard = bool(self._notices) and self.state is SessionState.ACTIVE and not self.config.listens_only
        return 0.0 if is_heard and self._is_quiet else None

    def _ending_due(self) -> float | None:
        is_heard = self.config.speaks and not self.config.listens_only
        return self._ending_at if is_heard and self.state is SessionState.ACTIVE and self._is_quiet else None

    def _idle_due(self) -> float | None:
        settings = self.config.turn_detection
        if settings is None or settings.idle_timeout_ms is None:
            return None
        if self.state is not SessionState.ACTIVE or not self._is_quiet:
            return None
        if self.response is None or self.response.is_idle_prompt:  # ask once, and not before the first exchange
            return None
        return max(self._responder.ended_at, self._listener.quiet_since) + settings.idle_timeout_ms / 1000

    def _greet(self, now: float) -> None:
        """Say the first words, unless something was said or is under way already."""
        self._greet_at = None
        if self.state is SessionState.ACTIVE and self._is_quiet and not self.response and not self.conversation.items:
            self._responder.begin(self.config, now, instead=self._first_words)

    def _prompt_idle_caller(self, now: float) -> None:
        settings = self.config.turn_detection
        heard_ms = self._listener.heard_ms
        since_ms = max(0, heard_ms - (settings.idle_timeout_ms or 0 if settings else 0))
        self._send(ev.IdleTimeout(audio_start_ms=since_ms, audio_end_ms=heard_ms, item_id=self._new_id("item")))
        self._responder.begin(self.config, now, is_idle_prompt=True)

    def _send(self, event: ev.ServerEvent) -> None:
        self._out.append(replace(event, event_id=self._new_id("event")))

    def _cut_playout(self) -> None:
        self._out.append(PlayoutCut())

    def _session_on_wire(self) -> dict[str, Any]:
        return {"id": self.id, "object": "realtime.session", **self.config.to_wire()}


def _is_due(time: float | None, now: float) -> bool:
    return time is not None and now >= time
