"""Ducking: a reply is made quieter while it is not known whether the caller interrupts it, and held where that takes
long.

An "mm-hm" is known for what it is after half a second, in which the reply went on quietly. What takes longer hides
words: where this server paces the sound (`SessionConfig.has_track`), the reply then pauses, and goes on from the
beginning of the word at which it was ducked. Sans-I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from voiceapp.protocol.hearing.utterance import Utterance
from voiceapp.protocol.speaking.responding import Responder
from voiceapp.protocol.speaking.response import Response
from voiceapp.protocol.wire.events import ReplyDucked, ReplyRestored, ServerEvent

HOLD_S = 0.6
"""A reply is ducked for so long at most. Of 28 nods and noises, 25 were known for what they are before that. Were it
held after 0.3 s, as good as every nod would make it repeat a word."""


@dataclass(slots=True)
class _Ducked:
    response: Response
    utterance: Utterance
    """The utterance that may interrupt it."""
    at: float
    at_ms: float
    """Length of the reply that had been heard then."""
    is_held: bool = False


class Ducking:
    """Follows the replies of one session."""

    def __init__(self, responder: Responder, send: Callable[[ServerEvent], None]) -> None:
        self._responder = responder
        self._send = send
        self._ducked: _Ducked | None = None

    def begin(self, utterance: Utterance, now: float) -> None:
        """Duck the reply, which may have been interrupted."""
        response = self._responder.response
        if response is not None and self._ducked is None:
            self._ducked = _Ducked(response, utterance, now, response.playout.heard_ms(now))
            self._send(ReplyDucked(response_id=response.id))

    def hold_due(self) -> float | None:
        """Time at which the reply is to be held. What may be its own echo does not hold it."""
        ducked = self._ducked
        if ducked is None or ducked.is_held or not ducked.utterance.is_sure:
            return None
        is_paced = ducked.response.config.has_track and ducked.response is self._responder.live
        return ducked.at + HOLD_S if is_paced else None

    def hold(self, now: float) -> None:
        """Hold the reply: it is still not known what the sound is."""
        if self._ducked is not None:
            self._ducked.is_held = True
            self._ducked.response.playout.hold(now)
            self._responder.cut_playout()

    def restore(self, now: float) -> None:
        """Restore the volume, and go on where the reply was held: it was not interrupted."""
        ducked, self._ducked = self._ducked, None
        if ducked is None:
            return
        response = ducked.response
        from_ms: float | None = None
        if ducked.is_held and response.is_live:
            from_ms = response.playout.go_on(ducked.at_ms, now)
        elif not response.config.has_track:
            from_ms = response.playout.word_start(ducked.at_ms)
        is_told = from_ms is not None and response.message is not None
        self._send(
            ReplyRestored(
                response_id=response.id,
                item_id=response.message.id if is_told and response.message else None,
                audio_start_ms=round(from_ms) if is_told and from_ms is not None else None,
            )
        )

    def forget(self) -> None:
        """The reply is cut."""
        self._ducked = None
