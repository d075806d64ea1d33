"""Recognised sentences in the order in which they were spoken; the words of a later one may be known first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from voiceapp.protocol.wire import events as ev


@dataclass(slots=True)
class Sentence:
    """One as far as it is known; `end_ms` is set when it is whole."""

    number: int
    begin_ms: int
    text: str
    end_ms: int | None


@dataclass(slots=True)
class _Turn:
    began_ms: int | None = None
    ended_ms: int | None = None
    text: str = ""
    is_whole: bool = False


class Sentences:
    """Takes a session's events about turns, and gives what is to be told of them."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}
        """Turns that were not told in whole, in the order in which they began."""
        self._number = 1
        self._said_until_ms = 0
        """The end of the last sentence: one whose beginning was not heard, as at the end of a file, begins there."""

    def take(self, event: ev.ServerEvent, heard_ms: int) -> Iterator[Sentence]:
        """Yield the sentences that can be told now.

        Args:
            event: one about a turn, or any other.
            heard_ms: how much was heard up to now, the end of a turn whose end was not noticed.
        """
        if isinstance(event, ev.SpeechStarted):
            self._turn(event.item_id).began_ms = event.audio_start_ms
        elif isinstance(event, ev.SpeechStopped):
            self._turn(event.item_id).ended_ms = event.audio_end_ms
            if event.reason:  # it was no speech, and gets no words
                self._turns.pop(event.item_id)
                yield from self._whole_ones()
        elif isinstance(event, ev.AudioCommitted):
            turn = self._turn(event.item_id)
            turn.ended_ms = heard_ms if turn.ended_ms is None else turn.ended_ms
        elif isinstance(event, ev.TranscriptionDelta):
            turn = self._turn(event.item_id)
            turn.text = event.text + event.stash
            if turn is self._first:
                yield self._sentence(turn)
        elif isinstance(event, ev.TranscriptionCompleted):
            turn = self._turn(event.item_id)
            turn.text, turn.is_whole = event.transcript, True
            turn.ended_ms = heard_ms if turn.ended_ms is None else turn.ended_ms
            yield from self._whole_ones()

    def _turn(self, item_id: str) -> _Turn:
        return self._turns.setdefault(item_id, _Turn())

    @property
    def _first(self) -> _Turn | None:
        return next(iter(self._turns.values()), None)

    def _sentence(self, turn: _Turn) -> Sentence:
        begin_ms = self._said_until_ms if turn.began_ms is None else turn.began_ms
        return Sentence(self._number, begin_ms, turn.text, turn.ended_ms if turn.is_whole else None)

    def _whole_ones(self) -> Iterator[Sentence]:
        for item_id, turn in list(self._turns.items()):
            if not turn.is_whole:
                return
            del self._turns[item_id]
            if turn.text:
                yield self._sentence(turn)
                self._number += 1
                self._said_until_ms = turn.ended_ms or self._said_until_ms
