"""Replies begun on the speculation that a pause ends the turn: ready when it does, gone without trace when not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.conversation import Conversation
from voiceapp.protocol.hearing.utterance import Utterance
from voiceapp.protocol.items import Item, Message
from voiceapp.protocol.work import Abandon, Confirm, Respond, Work

MAX_SPEECH_MS = 15_000
"""Longest speech that is speculated on: who speaks for longer is dictating, and seldom at the end."""
MAX_TIMES = 2
"""Speculations on one turn: who goes on twice may well go on again."""

_MARKS = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class Begun:
    """A reply that was begun."""

    response_id: str
    item_id: str
    config: SessionConfig
    read: list[str]
    """The items that it was written from."""


class Speculation:
    """At most one reply ahead of its turn."""

    def __init__(
        self, conversation: Conversation, *, start: Callable[[Work], None], new_id: Callable[[str], str]
    ) -> None:
        self._conversation = conversation
        self._start = start
        self._new_id = new_id
        self._begun: Begun | None = None
        self._times: tuple[str, int] = ("", 0)
        """The latest turn's item, and the number of speculations on it."""

    def begin(self, turn: Utterance, config: SessionConfig, *, ordinal: int) -> None:
        """Have the reply to a turn begun that may be over."""
        said = Message(turn.item_id, spoken=True, text=turn.words or "")
        history = self._conversation.history(config.max_history_turns, expected=said)
        read = _read(history)
        if (begun := self._begun) and (begun.item_id, begun.config, begun.read) == (turn.item_id, config, read):
            return
        self.drop()
        item_id, times = self._times
        times = times + 1 if item_id == turn.item_id else 1
        self._times = (turn.item_id, times)
        if times > MAX_TIMES or turn.speech_ms > MAX_SPEECH_MS:
            return
        begun = self._begun = Begun(self._new_id("resp"), turn.item_id, config, read)
        self._start(
            Respond(
                begun.response_id,
                config,
                history,
                ordinal=ordinal,
                input_audio_ms=turn.length_ms,
                is_speculative=True,
            )
        )

    def drop(self) -> None:
        """The caller goes on, or something else came: nothing of the reply is ever seen."""
        begun, self._begun = self._begun, None
        if begun is not None:
            self._start(Abandon(response_id=begun.response_id))

    def response_id(self, turn: Utterance | None, config: SessionConfig) -> str | None:
        """The id for the response to a turn whose words are known, if its reply was begun with the same ones."""
        begun = self._begun
        if begun is None or turn is None or (begun.item_id, begun.config) != (turn.item_id, config):
            return None
        return begun.response_id if begun.read == _read(self._conversation.history(config.max_history_turns)) else None

    def confirm(self, response_id: str) -> bool:
        """Let a reply be heard that was begun under this id; False when there is none."""
        if self._begun is None or self._begun.response_id != response_id:
            self.drop()
            return False
        self._begun = None
        self._start(Confirm(response_id))
        return True


def _read(history: tuple[Item, ...]) -> list[str]:
    """The items without capitals and marks, in which two readings of the same words may differ."""
    return [_MARKS.sub(" ", json.dumps(item.to_wire(), ensure_ascii=False).casefold()) for item in history]
