"""The assistant's side of a session: which turn gets a response, one response at a time, and the log of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from voiceapp.errors import RemoteProtocolError
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.conversation import Conversation
from voiceapp.protocol.hearing.speculation import Speculation
from voiceapp.protocol.hearing.utterance import Utterance
from voiceapp.protocol.reminders import Reminders
from voiceapp.protocol.speaking.late_calls import LateCalls
from voiceapp.protocol.speaking.response import Response
from voiceapp.protocol.speaking.stock_replies import DEFAULT_LANGUAGE, StockReply, stock_reply
from voiceapp.protocol.states import ResponseState
from voiceapp.protocol.turn_log import TurnLog
from voiceapp.protocol.wire.events import ItemDeleted, RemindersUpdated, ServerEvent, SourceAdded
from voiceapp.protocol.work import (
    Abandon,
    OfReply,
    ReplyAside,
    ReplyAudio,
    ReplyAuthor,
    ReplyCall,
    ReplyDropped,
    ReplyEnded,
    ReplyReminders,
    ReplyServedBy,
    ReplySource,
    ReplySpoken,
    ReplyText,
    ReplyToolCall,
    ReplyUsed,
    ReplyWords,
    Respond,
    Work,
)

PLAYED = (ResponseState.COMPLETED, ResponseState.INCOMPLETE)
"""States of a response whose sent audio is heard to its end; others fall silent at once."""

Sentence = str | StockReply
"""Something to say: in words, or one that every language has."""


class Responder:
    """Turns with words in; responses begun, written and ended out."""

    def __init__(
        self,
        conversation: Conversation,
        *,
        send: Callable[[ServerEvent], None],
        start: Callable[[Work], None],
        cut: Callable[[], None],
        new_id: Callable[[str], str],
        replies_in_english: bool = False,
    ) -> None:
        """`replies_in_english`: see `Session`."""
        self.response: Response | None = None
        """The latest response, live or ended."""
        self.before: Response | None = None
        """The one before it, which may still be heard."""
        self.turn_log = TurnLog()
        self.reminders = Reminders(new_id)
        self.calls = LateCalls()
        self._fillers = 0
        self._reminding: Response | None = None
        """The response that says what is due."""
        self.owes_response = False
        """A turn with words waits for a response, which begins when the caller is silent."""
        self._owes_stock_reply = False
        """The response that is owed only says that nothing was understood."""
        self._to_say = ""
        """Text of the latest response that is said without asking the chat model; empty lets that reply."""
        self.ended_at = -math.inf
        """Time at which the latest response ended."""
        self._conversation = conversation
        self._conversation_id = new_id("conv")
        self._send = send
        self._start = start
        self.cut_playout = cut
        """Playout of what was handed out shall stop."""
        self._new_id = new_id
        self._waiting_turn: Utterance | None = None
        """The last turn that no response took up yet."""
        self._speculation = Speculation(conversation, start=start, new_id=new_id)
        self.replies_in_english = replies_in_english
        self._taken_turn: Utterance | None = None
        """The turn that the latest response took up."""

    @property
    def live(self) -> Response | None:
        """The response that is under way."""
        return self.response if self.response and self.response.is_live else None

    def generating(self, response_id: str) -> Response | None:
        """The response whose reply the model is writing; None for results that come too late."""
        response = self.response
        if response and response.id == response_id and response.state is ResponseState.GENERATING:
            return response
        return None

    def take(self, result: OfReply, now: float) -> None:
        """A result of the reply that the model is writing; one that comes too late is ignored."""
        if isinstance(result, ReplyDropped):
            self.turn_log.dropped_tokens += result.tokens
            return
        response = self.generating(result.response_id)
        if response is None:
            return
        if isinstance(result, ReplyText):
            response.add_text(result.delta, now)
        elif isinstance(result, ReplyAudio):
            response.add_audio(result.pcm, now)
        elif isinstance(result, ReplyAside):
            response.add_aside(result.words, result.pcm, now)
        elif isinstance(result, ReplyWords):
            response.add_words(result.words)
        elif isinstance(result, ReplySpoken):
            response.mark_spoken(result.characters)
        elif isinstance(result, ReplyCall):
            response.add_call(result, now)
        elif isinstance(result, ReplyUsed):
            response.usage.input_text = result.input_tokens
            response.usage.output_text = result.output_tokens
        elif isinstance(result, ReplyReminders):
            self.reminders.change(result.change, now)
        elif isinstance(result, ReplySource):
            found = result.source
            self._send(SourceAdded(response_id=response.id, title=found.title, text=found.text, page=found.page))
        elif isinstance(result, ReplyServedBy):
            response.served_by = result.served_by
        elif isinstance(result, ReplyAuthor):
            response.note_author(result.author)
        elif isinstance(result, ReplyToolCall):
            response.add_tool_call(result)
        elif isinstance(result, ReplyEnded):
            response.end(result.finish_reason)
        else:
            self.fail(response, result.code, result.message, now)

    def speculate(self, turn: Utterance, config: SessionConfig) -> None:
        """Have a reply begun to a turn that may be over, unless another is under way or owed."""
        is_replied_to = self.knows_language(turn.language or config.transcription_language) or config.tools
        if self.live is None and not self.owes_response and is_replied_to:
            self._speculation.begin(turn, config, ordinal=self.turn_log.turns + 1)

    def knows_language(self, language: str | None) -> bool:
        """The model replies in this language."""
        return not self.replies_in_english or language in ("", None, DEFAULT_LANGUAGE)

    def speech_resumed(self) -> None:
        """The caller was not at the end."""
        self._speculation.drop()

    def take_back(self, turn: Utterance, at: float, now: float) -> bool:
        """Take back the reply to a turn that goes on; False if it was heard by `at`, or something else came since."""
        live, items = self.live, self._conversation.items
        reply = live.message if live else None
        behind = items[:-1] if reply and items and items[-1] is reply else items
        if not behind or behind[-1].id != turn.item_id:
            return False
        if live and (live.is_out_of_band or (reply and not live.config.speaks) or live.playout.heard_ms(at)):
            return False
        self.cancel("turn_detected", now)
        if reply:
            self._conversation.remove(reply)
            self._send(ItemDeleted(item_id=reply.id))
        return True

    def turn_committed(self, turn: Utterance) -> None:
        """Its words may follow later."""
        if self._owes_stock_reply:  # not needed: the caller has begun again
            self.owes_response = self._owes_stock_reply = False
        self._waiting_turn = turn

    def turn_has_words(self, turn: Utterance, config: SessionConfig, *, wants_response: bool) -> None:
        """A turn can be responded to, at once or when the client asks; where responses do not exist, it is complete."""
        if config.listens_only:
            self.turn_is_void(turn)
            self.turn_log.heard(turn)
            return
        self.owes_response = self.owes_response or wants_response
        self._owes_stock_reply = False
        if not self.owes_response:
            self._speculation.drop()

    def turn_was_not_understood(self, turn: Utterance, *, is_told: bool, wants_response: bool) -> None:
        """The caller spoke, and no word was understood; the response says so, unless words wait for one."""
        if not is_told or self.owes_response or not self._is_last(turn):
            self.turn_is_void(turn)
        else:
            self.owes_response = self._owes_stock_reply = wants_response

    def turn_is_void(self, turn: Utterance) -> None:
        """End the turn without a response: it has no words, or its item was deleted."""
        self._speculation.drop()
        if self._waiting_turn is turn:
            self._waiting_turn = None

    def words_failed(self, code: str, message: str, now: float) -> bool:
        """Words will never be known; a response that waits for them fails. False when none does."""
        if not self.response or self.response.state is not ResponseState.WAITING:
            return False
        self.fail(self.response, code, message, now)
        return True

    def require_responses(self, config: SessionConfig) -> None:
        """Check that this session responds at all.

        Raises:
            RemoteProtocolError: if it only transcribes.
        """
        if config.listens_only:
            raise RemoteProtocolError("This session only transcribes: it gives no responses.", code="invalid_event")

    def require_free(self, *, is_speech_open: bool) -> None:
        """Check that a response may begin because the client asks for one.

        Raises:
            RemoteProtocolError: if one is under way, or the user is speaking.
        """
        if self.live:
            raise RemoteProtocolError(
                "The conversation already has an active response; cancel it or wait for response.done.",
                code="conversation_already_has_active_response",
            )
        if is_speech_open:
            raise RemoteProtocolError("The user is speaking; the response follows by itself.", code="user_is_speaking")

    def cancel_on_request(self, response_id: str | None, now: float) -> None:
        """Cancel the response under way; None stands for whichever it is.

        Raises:
            RemoteProtocolError: if there is none, or it is another one.
        """
        if not self.live or response_id not in (None, self.live.id):
            raise RemoteProtocolError("There is no active response to cancel.", code="response_cancel_not_active")
        self.owes_response = False
        self.cancel("client_cancelled", now)

    def begin(
        self,
        config: SessionConfig,
        now: float,
        *,
        is_idle_prompt: bool = False,
        instead: str = "",
        context: Conversation | None = None,
    ) -> None:
        """Announce a response; the model writes its reply when `generate` is called, unless `instead` is said.

        With `context` it reads that, and its output is not added to the conversation.
        """
        self._taken_turn = None
        self._to_say = instead
        before = self.before = self.response
        begun = (
            None if is_idle_prompt or instead or context else self._speculation.response_id(self._waiting_turn, config)
        )
        self.response = Response(
            id=begun or self._new_id("resp"),
            conversation_id=None if context else self._conversation_id,
            config=config,
            conversation=context or self._conversation,
            send=self._send,
            new_id=self._new_id,
            origin=now,
            not_before=before.playout.heard_at if before and before.state in PLAYED else -math.inf,
            is_idle_prompt=is_idle_prompt,
        )
        self.response.begin()

    def remind(self, config: SessionConfig, now: float) -> None:
        """Say what is due."""
        self.begin(config, now, instead=self.reminders.take_due(now))
        self._reminding = self.response

    def fill(self, config: SessionConfig, now: float) -> None:
        """Say that a function takes a moment."""
        self.calls.tell()
        self._fillers += 1
        self.say_aside(StockReply.FILLER, config, now, number=self._fillers)

    def tell_of_end(self, config: SessionConfig, now: float) -> None:
        """Say that the session is nearly over."""
        self.say_aside(StockReply.ENDING, config, now)

    def say_aside(self, said: Sentence, config: SessionConfig, now: float, *, number: int = 0) -> None:
        """Say a sentence that no model reads later."""
        words = stock_reply(said, config.transcription_language, number) if isinstance(said, StockReply) else said
        self.begin(replace(config, tools=()), now, instead=words, context=Conversation())

    def tell_of_reminders(self, now: float) -> None:
        """Let the client know which are set, if that has changed, but not before the end of what is being said."""
        if (self._reminding is None or self._reminding is not self.live) and self.reminders.take_news():
            self._send(RemindersUpdated(reminders=[each.to_wire() for each in self.reminders.pending(now)]))

    def generate(self, max_history_turns: int | None) -> None:
        """Let the model write the reply of a response that was announced: all words that it should read are known."""
        response = self.response
        if not response or response.state is not ResponseState.WAITING:
            return
        if not response.is_out_of_band:
            self.owes_response = self._owes_stock_reply = False
            self.calls.read()
            self._taken_turn, self._waiting_turn = self._waiting_turn, None
        if self._taken_turn:
            response.note_turn(self._taken_turn)
        response.generate()
        if self._speculation.confirm(response.id):
            return
        history = response.conversation.history(max_history_turns)
        turn = self._taken_turn if self._taken_turn and self._is_last(self._taken_turn) else None
        config = response.config
        if turn and turn.language:
            config = replace(config, transcription_language=turn.language)
        self._start(
            Respond(
                response.id,
                config,
                history,
                ordinal=self.turn_log.turns + 1,
                input_audio_ms=response.usage.input_audio_ms,
                is_idle_prompt=response.is_idle_prompt,
                instead=self._to_say or self._stock_reply(turn, config),
            )
        )

    def _stock_reply(self, turn: Utterance | None, config: SessionConfig) -> str:
        """Return what is said in place of a reply to a turn that was not understood, or by the recognizer only."""
        language = config.transcription_language
        if turn is None or (turn.words and (config.tools or self.knows_language(language))):
            return ""
        return stock_reply(StockReply.ENGLISH_ONLY if turn.words else StockReply.NOT_UNDERSTOOD, language)

    def _is_last(self, turn: Utterance) -> bool:
        """Nothing was said or typed since, and its item was not deleted."""
        items = self._conversation.items
        return bool(items) and items[-1].id == turn.item_id

    def advance(self, now: float, *, is_hurried: bool) -> None:
        """Send what is due of the response under way."""
        if response := self.live:
            response.playout.is_hurried = is_hurried
            response.advance(now)
            if not response.is_live:
                self._ended(response, now)

    def cancel(self, reason: str, now: float) -> None:
        """Stop the response under way, if there is one."""
        if response := self.live:
            self._start(Abandon(response_id=response.id))
            response.cancel(reason, now)
            self.cut_playout()
            self._ended(response, now)

    def fail(self, response: Response, code: str, message: str, now: float) -> None:
        """The response cannot be completed; it ends when what there is of its audio was sent."""
        response.fail(code, message)
        if not response.is_live:
            self._ended(response, now)

    def _ended(self, response: Response, now: float) -> None:
        self.ended_at = now
        self.calls.ended(response, now)
        self.turn_log.close(response, self._taken_turn, now)
