"""What a session asks of the engines, and the record it keeps for the books."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.conversation import Item


@dataclass(frozen=True, slots=True)
class JudgeTurn:
    """Ask the turn model whether the caller has finished; answer with `turn_judged`."""

    item_id: str
    version: int
    audio: NDArray[np.float32]
    """The utterance so far, 16 kHz."""


@dataclass(frozen=True, slots=True)
class Recognize:
    """Find the words of an utterance; answer with `recognized` or `recognition_failed`."""

    item_id: str
    version: int
    audio: NDArray[np.float32]
    """The utterance so far, 16 kHz."""
    language: str | None
    is_partial: bool = False
    """Only to be shown; may be dropped under load."""


@dataclass(frozen=True, slots=True)
class RecognizeItem:
    """Find the words of audio that came inside an item; answer with `item_recognized` or `item_recognition_failed`."""

    item_id: str
    audio: str
    """Base64 in the session's input format, as the client sent it."""


@dataclass(frozen=True, slots=True)
class Respond:
    """Write and speak an answer; answer with `answer_…`, the last of them `answer_ended` or `answer_failed`."""

    response_id: str
    config: SessionConfig
    history: tuple[Item, ...]
    is_idle_prompt: bool = False
    """Nobody asked: the caller has been silent for the session's `idle_timeout_ms`."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Work on this item or response is not wanted any more: its result would be ignored, so stop it."""

    item_id: str | None = None
    response_id: str | None = None


Work = JudgeTurn | Recognize | RecognizeItem | Respond | Abandon


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The record of one exchange; said again with the same ordinal when a truncation changes it."""

    ordinal: int
    status: str
    """`completed`, `incomplete`, `failed` or `cancelled`."""
    user_text: str
    assistant_text: str
    heard_text: str
    """What of the answer was heard before an interruption; all of it otherwise."""
    is_interrupted: bool
    input_audio_ms: int
    output_audio_ms: int
    input_tokens: int
    output_tokens: int
    end_of_turn_ms: int | None
    """This and the next three: see `response.Metrics`."""
    recognition_ms: int | None
    first_token_ms: int | None
    first_audio_ms: int | None
