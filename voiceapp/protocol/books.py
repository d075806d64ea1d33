"""The record of every exchange of a conversation, for whoever keeps the books."""

from __future__ import annotations

from dataclasses import replace

from voiceapp.protocol.conversation import Conversation, Item
from voiceapp.protocol.response import Response
from voiceapp.protocol.states import ResponseState
from voiceapp.protocol.utterance import Utterance
from voiceapp.protocol.work import TurnEnded


class Books:
    """Makes one record per answer; a truncation of the latest answer makes it again."""

    def __init__(self, conversation: Conversation) -> None:
        self.turns = 0
        """Answers that have ended."""
        self._conversation = conversation
        self._new: list[TurnEnded] = []
        self._latest: tuple[Item | None, TurnEnded] | None = None

    def take(self) -> list[TurnEnded]:
        """Records since the last call."""
        records, self._new = self._new, []
        return records

    def close(self, response: Response, turn: Utterance | None) -> None:
        """An answer ended; `turn` is what it answered, None for typed words."""
        self.turns += 1
        message = response.message
        heard = message.text if message else ""
        self._add(
            message,
            TurnEnded(
                ordinal=self.turns,
                status=response.state.value,
                user_text=(turn.words or "") if turn else self._last_typed(response),
                assistant_text=heard + message.unheard if message else "",
                heard_text=heard,
                is_interrupted=response.state is ResponseState.CANCELLED,
                input_audio_ms=response.usage.input_audio_ms,
                output_audio_ms=round(response.playout.sent_ms),
                input_tokens=response.usage.input_text,
                output_tokens=response.usage.output_text,
                end_of_turn_ms=response.metrics.end_of_turn_ms,
                recognition_ms=response.metrics.recognition_ms,
                first_token_ms=response.metrics.first_token_ms,
                first_audio_ms=response.metrics.first_audio_ms,
            ),
        )

    def truncated(self, item: Item) -> None:
        """The listener's side says how much of an answer was heard."""
        if self._latest and self._latest[0] is item:
            self._add(item, replace(self._latest[1], heard_text=item.text, is_interrupted=bool(item.unheard)))

    def _add(self, message: Item | None, record: TurnEnded) -> None:
        self._latest = (message, record)
        self._new.append(record)

    def _last_typed(self, response: Response) -> str:
        """The user's words that the answer followed."""
        for item in reversed(self._conversation.items):
            if item.type == "message" and not response.owns(item):
                return item.text if item.role == "user" else ""
        return ""
