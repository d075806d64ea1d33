"""The assistant's side of a session: which turn gets an answer, one answer at a time, and the books about them."""

from __future__ import annotations

import math
from collections.abc import Callable

from voiceapp.protocol.books import Books
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.conversation import Conversation
from voiceapp.protocol.events import ServerEvent
from voiceapp.protocol.response import Response
from voiceapp.protocol.states import ResponseState
from voiceapp.protocol.utterance import Utterance
from voiceapp.protocol.work import Abandon, Respond, Work

PLAYED = (ResponseState.COMPLETED, ResponseState.INCOMPLETE)
"""What was sent of such an answer is heard to its end; others fall silent at once."""


class Answerer:
    """Turns with words in; answers begun, written and ended out."""

    def __init__(
        self,
        conversation: Conversation,
        *,
        send: Callable[[ServerEvent], None],
        start: Callable[[Work], None],
        new_id: Callable[[str], str],
    ) -> None:
        self.response: Response | None = None
        """The latest answer, live or ended."""
        self.books = Books(conversation)
        self.owes_answer = False
        """A turn with words waits for an answer, which begins when nobody speaks."""
        self.ended_at = -math.inf
        """When the latest answer ended."""
        self._conversation = conversation
        self._conversation_id = new_id("conv")
        self._send = send
        self._start = start
        self._new_id = new_id
        self._unanswered: Utterance | None = None
        """The last turn that no answer took up yet."""
        self._answered: Utterance | None = None
        """The turn that the latest answer took up."""

    @property
    def live(self) -> Response | None:
        """The answer that is under way."""
        return self.response if self.response and self.response.is_live else None

    def generating(self, response_id: str) -> Response | None:
        """The answer that the model is writing; None for results that come too late."""
        response = self.response
        if response and response.id == response_id and response.state is ResponseState.GENERATING:
            return response
        return None

    def turn_committed(self, turn: Utterance) -> None:
        """Its words may follow later."""
        self._unanswered = turn

    def turn_has_words(self, *, wants_answer: bool) -> None:
        """A turn can be answered, at once or when the client asks."""
        self.owes_answer = self.owes_answer or wants_answer

    def turn_is_void(self, turn: Utterance) -> None:
        """There is nothing to answer: no words, or its item was deleted."""
        if self._unanswered is turn:
            self._unanswered = None

    def words_failed(self, code: str, message: str, now: float) -> None:
        """Words will never be known; an answer that waits for them fails."""
        if self.response and self.response.state is ResponseState.WAITING:
            self.fail(self.response, code, message, now)

    def begin(self, config: SessionConfig, now: float, *, is_idle_prompt: bool = False) -> None:
        """Announce an answer; the model writes it when `generate` is called."""
        self._answered = None
        before = self.response
        self.response = Response(
            id=self._new_id("resp"),
            conversation_id=self._conversation_id,
            config=config,
            conversation=self._conversation,
            send=self._send,
            new_id=self._new_id,
            origin=now,
            not_before=before.playout.heard_at if before and before.state in PLAYED else -math.inf,
            is_idle_prompt=is_idle_prompt,
        )
        self.response.begin()

    def generate(self, max_history_turns: int | None) -> None:
        """Let the model write an answer that was announced: all words that it should read are known."""
        response = self.response
        if not response or response.state is not ResponseState.WAITING:
            return
        self.owes_answer = False
        self._answered, self._unanswered = self._unanswered, None
        if self._answered:
            response.note_turn(self._answered)
        response.generate()
        history = self._conversation.history(max_history_turns)
        self._start(Respond(response.id, response.config, history, response.is_idle_prompt))

    def advance(self, now: float, *, is_hurried: bool) -> None:
        """Send what is due of the answer under way."""
        if response := self.live:
            response.playout.is_hurried = is_hurried
            response.advance(now)
            if not response.is_live:
                self._ended(response, now)

    def cancel(self, reason: str, now: float) -> None:
        """Stop the answer under way, if there is one."""
        if response := self.live:
            self._start(Abandon(response_id=response.id))
            response.cancel(reason, now)
            self._ended(response, now)

    def fail(self, response: Response, code: str, message: str, now: float) -> None:
        """The answer cannot be completed."""
        response.fail(code, message)
        self._ended(response, now)

    def _ended(self, response: Response, now: float) -> None:
        self.ended_at = now
        self.books.close(response, self._answered)
