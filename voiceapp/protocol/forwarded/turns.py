"""The record of each exchange of a session that another service holds, from the events that pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import DEFAULT_OUTPUT
from voiceapp.protocol.work import TurnEnded

Wire = Mapping[str, Any]

REMEMBERED = 8
"""Utterances and exchanges that later events may still be about."""
MAX_CHARACTERS = 200_000
"""Characters of one response."""
STATUSES = frozenset({"completed", "incomplete", "failed", "cancelled"})
METRICS = ("end_of_turn_ms", "recognition_ms", "first_token_ms", "first_audio_ms")


@dataclass(slots=True)
class _Spoken:
    """An utterance of the caller."""

    item_id: str
    start_ms: int = 0
    end_ms: int = 0
    words: str = ""
    is_answered: bool = False


@dataclass(slots=True)
class _Exchange:
    """A response, and what it followed."""

    ordinal: int
    response_id: str
    spoken: _Spoken | None
    typed: str
    words: dict[str, str] = field(default_factory=dict)
    """Words by item."""
    heard: dict[str, str] = field(default_factory=dict)
    """Words that were heard, by item that was cut off."""
    audio_bytes: int = 0
    done: Wire | None = None


class ForwardedTurns:
    def __init__(self, *, listens_only: bool = False) -> None:
        self.output_format: AudioFormat = DEFAULT_OUTPUT
        self._listens_only = listens_only
        self._ordinals = 0
        self._typed = ""
        self._appended_ms = 0.0
        """Audio of the caller since it was last committed or cleared."""
        self._spoken: deque[_Spoken] = deque(maxlen=REMEMBERED)
        self._live: dict[str, _Exchange] = {}
        self._ended: deque[_Exchange] = deque(maxlen=REMEMBERED)
        self._followers: Mapping[str, Callable[[Wire], list[TurnEnded] | None]] = {
            "input_audio_buffer.speech_started": self._started,
            "input_audio_buffer.speech_stopped": self._stopped,
            "input_audio_buffer.committed": self._committed,
            "input_audio_buffer.cleared": self._cleared,
            "conversation.item.created": self._item_created,
            "conversation.item.truncated": self._truncated,
            "conversation.item.input_audio_transcription.completed": self._transcribed,
            "response.audio_transcript.delta": self._worded,
            "response.text.delta": self._worded,
            "response.done": self._done,
        }

    @property
    def is_responding(self) -> bool:
        return bool(self._live)

    @property
    def live_ids(self) -> tuple[str, ...]:
        return tuple(self._live)

    def begin(self, response_id: str) -> tuple[int, int]:
        """A response was created: its ordinal, and how long the speech was that it follows, in ms."""
        self._ordinals += 1
        latest = self._spoken[-1] if self._spoken else None
        spoken = latest if latest is not None and not latest.is_answered and not self._typed else None
        if spoken is not None:
            spoken.is_answered = True
        self._live[response_id] = _Exchange(self._ordinals, response_id, spoken, self._typed)
        self._typed = ""
        return self._ordinals, _length_ms(spoken)

    def drop(self, response_id: str) -> None:
        """A response was refused: it leaves no record."""
        self._live.pop(response_id, None)

    @property
    def has_uncommitted(self) -> bool:
        """The caller has sent audio that was not committed."""
        return self._appended_ms > 0

    def appended(self, ms: float) -> None:
        """Audio of the caller passed."""
        self._appended_ms += ms

    def sounded(self, n_bytes: int) -> None:
        """Audio of a response passed. Its owner is the only one under way that speaks."""
        for exchange in self._live.values():
            exchange.audio_bytes += n_bytes
            return

    def follow(self, wire: Wire) -> list[TurnEnded]:
        """Take an event; returns the records that it makes or changes."""
        follower = self._followers.get(wire["type"])
        return (follower(wire) or []) if follower is not None else []

    def cut_off(self, status: str) -> list[TurnEnded]:
        """The records of responses that end without a word of the service's."""
        return [self._end(exchange, {"status": status}) for exchange in tuple(self._live.values())]

    def _started(self, wire: Wire) -> None:
        self._spoken.append(_Spoken(_text(wire, "item_id"), _number(wire, "audio_start_ms")))

    def _stopped(self, wire: Wire) -> None:
        if (spoken := self._find(_text(wire, "item_id"))) is not None:
            spoken.end_ms = _number(wire, "audio_end_ms")

    def _committed(self, wire: Wire) -> None:
        if self._find(_text(wire, "item_id")) is None:  # a caller who commits by hand
            self._spoken.append(_Spoken(_text(wire, "item_id"), end_ms=round(self._appended_ms)))
        self._cleared(wire)

    def _cleared(self, _: Wire) -> None:
        self._appended_ms = 0.0

    def _item_created(self, wire: Wire) -> None:
        item = wire.get("item")
        if isinstance(item, dict) and item.get("role") == "user" and self._find(str(item.get("id"))) is None:
            self._typed = words_of(item)

    def _transcribed(self, wire: Wire) -> list[TurnEnded]:
        spoken = self._find(_text(wire, "item_id"))
        if spoken is None:
            spoken = _Spoken(_text(wire, "item_id"))
            self._spoken.append(spoken)
        spoken.words = _text(wire, "transcript")
        if self._listens_only:
            self._ordinals += 1
            return [self._record(_Exchange(self._ordinals, "", spoken, "", done={"status": "completed"}))]
        return [self._record(exchange) for exchange in self._ended if exchange.spoken is spoken]

    def _worded(self, wire: Wire) -> None:
        exchange = self._live.get(_text(wire, "response_id"))
        if exchange is not None:
            item_id = _text(wire, "item_id")
            exchange.words[item_id] = (exchange.words.get(item_id, "") + _text(wire, "delta"))[:MAX_CHARACTERS]

    def _truncated(self, wire: Wire) -> list[TurnEnded]:
        item_id = _text(wire, "item_id")
        for exchange in (*self._live.values(), *self._ended):
            if item_id in exchange.words:
                exchange.heard[item_id] = _text(wire, "transcript")
                return [self._record(exchange)] if exchange.done is not None else []
        return []

    def _done(self, wire: Wire) -> list[TurnEnded]:
        response = wire.get("response")
        exchange = self._live.get(str(response.get("id"))) if isinstance(response, dict) else None
        return [self._end(exchange, response)] if exchange is not None and isinstance(response, dict) else []

    def _end(self, exchange: _Exchange, response: Wire) -> TurnEnded:
        exchange.done = response
        del self._live[exchange.response_id]
        self._ended.append(exchange)
        return self._record(exchange)

    def _record(self, exchange: _Exchange) -> TurnEnded:
        response = exchange.done or {}
        spoken, said = exchange.spoken, " ".join(exchange.words.values())
        heard = " ".join({**exchange.words, **exchange.heard}.values())
        status = response.get("status")
        metrics = _object(response, "metrics")
        return TurnEnded(
            ordinal=exchange.ordinal,
            status=status if isinstance(status, str) and status in STATUSES else "completed",
            user_text=spoken.words if spoken is not None else exchange.typed,
            assistant_text=said,
            heard_text=heard,
            is_interrupted=status == "cancelled" or heard != said,
            input_audio_ms=_length_ms(spoken),
            output_audio_ms=round(self.output_format.wire_ms(exchange.audio_bytes)),
            input_tokens=_tokens(_object(response, "usage"), "input"),
            output_tokens=_tokens(_object(response, "usage"), "output"),
            is_spoken=spoken is not None,
            served_by="",
            lasted_ms=0,
            dropped_tokens=0,
            is_charged=False,
            **{name: None if metrics.get(name) is None else _number(metrics, name) for name in METRICS},
        )

    def _find(self, item_id: str) -> _Spoken | None:
        return next((spoken for spoken in self._spoken if spoken.item_id == item_id), None)


def words_of(item: Wire) -> str:
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    found = (part.get("text") or part.get("transcript") for part in parts if isinstance(part, dict))
    return " ".join(words for words in found if isinstance(words, str))


def _length_ms(spoken: _Spoken | None) -> int:
    return max(0, spoken.end_ms - spoken.start_ms) if spoken is not None else 0


def _tokens(usage: Wire, side: str) -> int:
    """Tokens of text where the service counts them apart, for audio is charged by its length; else all tokens."""
    details = _object(usage, f"{side}_tokens_details") or _object(usage, f"{side}_token_details")
    return _number(details, "text_tokens") if "text_tokens" in details else _number(usage, f"{side}_tokens")


def _object(wire: Wire, name: str) -> Wire:
    value = wire.get(name)
    return value if isinstance(value, dict) else {}


def _number(wire: Wire, name: str) -> int:
    value = wire.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2**31 - 1
    return int(value) if is_number and value is not None else 0


def _text(wire: Wire, name: str) -> str:
    value = wire.get(name)
    return value if isinstance(value, str) else ""
