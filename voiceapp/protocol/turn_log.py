"""The record of every exchange of a conversation."""

from __future__ import annotations

from dataclasses import replace

from voiceapp.protocol.hearing.utterance import Utterance
from voiceapp.protocol.items import Author, Message, Role
from voiceapp.protocol.speaking.response import Response
from voiceapp.protocol.states import ResponseState
from voiceapp.protocol.work import TurnEnded


class TurnLog:
    """Makes one record per response; a truncation of the latest response makes it again."""

    def __init__(self) -> None:
        self.turns = 0
        """Responses that have ended."""
        self.dropped_tokens = 0
        """Tokens that were sent since then for replies which were dropped."""
        self._new: list[TurnEnded] = []
        self._latest: tuple[Message | None, TurnEnded] | None = None

    def take(self) -> list[TurnEnded]:
        """Records since the last call."""
        records, self._new = self._new, []
        return records

    def close(self, response: Response, turn: Utterance | None, now: float) -> None:
        """A response ended now; `turn` is the utterance that it followed, None for typed words."""
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
                dropped_tokens=self.dropped_tokens,
                is_spoken=turn is not None,
                lasted_ms=response.since_origin(now),
                end_of_turn_ms=response.metrics.end_of_turn_ms,
                recognition_ms=response.metrics.recognition_ms,
                first_token_ms=response.metrics.first_token_ms,
                first_audio_ms=response.metrics.first_audio_ms,
                served_by=response.served_by or _written_by(response.author),
            ),
        )
        self.dropped_tokens = 0

    def heard(self, turn: Utterance) -> None:
        """An utterance was transcribed, and no response follows."""
        self.turns += 1
        record = TurnEnded(
            ordinal=self.turns,
            status=ResponseState.COMPLETED.value,
            user_text=turn.words or "",
            assistant_text="",
            heard_text="",
            is_interrupted=False,
            input_audio_ms=turn.length_ms,
            output_audio_ms=0,
            input_tokens=0,
            output_tokens=0,
            is_spoken=True,
            end_of_turn_ms=None,
            recognition_ms=None,
            first_token_ms=None,
            first_audio_ms=None,
        )
        self._add(None, record)

    def truncated(self, item: Message) -> None:
        """The listener's side says how much of a reply was heard."""
        if self._latest and self._latest[0] is item:
            self._add(item, replace(self._latest[1], heard_text=item.text, is_interrupted=bool(item.unheard)))

    def _add(self, message: Message | None, record: TurnEnded) -> None:
        self._latest = (message, record)
        self._new.append(record)

    def _last_typed(self, response: Response) -> str:
        """The user's words that the response followed."""
        for item in reversed(response.conversation.items):
            if isinstance(item, Message) and not response.owns(item):
                return item.text if item.role is Role.USER else ""
        return ""


def _written_by(author: Author | None) -> str:
    return (author.name or author.kind) if author else ""
