"""Work that a session asks of the engines, its results, and the record of each turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.items import Author, Item
from voiceapp.protocol.reminders import ReminderChange


@dataclass(frozen=True, slots=True)
class JudgeTurn:
    """Ask the turn model whether the caller has finished; the result is `TurnJudged`."""

    item_id: str
    version: int
    audio: NDArray[np.float32]
    """The utterance so far, 16 kHz."""
    is_early: bool = False
    """In a lull, which is seldom an end: not while the machine is busy."""


@dataclass(frozen=True, slots=True)
class Recognize:
    """Find the words of an utterance; the result is `Recognized` or `RecognitionFailed`."""

    item_id: str
    version: int
    audio: NDArray[np.float32]
    """The utterance so far, 16 kHz."""
    language: str | None
    among: tuple[str, ...] | None = None
    """The languages that it may be instead, empty for any; None where `language` is certain."""
    is_partial: bool = False
    """Only to be shown; may be dropped under load."""
    is_early: bool = False
    """Partial, and all that was said if the caller says no more."""
    is_caption: bool = False
    """Partial, and nothing follows from it: only made where a core is idle."""


@dataclass(frozen=True, slots=True)
class RecognizeItem:
    """Find the words of audio that came inside an item; the result is `ItemRecognized` or `ItemRecognitionFailed`."""

    item_id: str
    audio: str
    """Base64, as the client sent it."""
    audio_format: AudioFormat


@dataclass(frozen=True, slots=True)
class Respond:
    """Write and speak a reply; the results are `Reply…`, the last of them `ReplyEnded` or `ReplyFailed`."""

    response_id: str
    config: SessionConfig
    history: tuple[Item, ...]
    ordinal: int
    """Ordinal of the `TurnEnded` that it will come to."""
    input_audio_ms: int
    """Length of the user's speech before it."""
    is_idle_prompt: bool = False
    """Not asked for: the caller has been silent for the session's `idle_timeout_ms`."""
    instead: str = ""
    """Said in place of a reply, without asking the chat model."""
    is_speculative: bool = False
    """On the speculation that the caller has finished: nothing of it may be heard or counted before `Confirm`."""


@dataclass(frozen=True, slots=True)
class ListTools:
    """Ask a server which tools it has; the result is `ToolsListed`."""

    item_id: str
    server_label: str


@dataclass(frozen=True, slots=True)
class ToolsListed:
    """The tools of a server as OpenAI writes them; None where it could not be asked."""

    work: ListTools
    tools: list[dict[str, Any]] | None


@dataclass(frozen=True, slots=True)
class ReplyToolCall:
    """The reply calls a tool of a server, and then what came of it."""

    response_id: str
    call_id: str
    server_label: str
    name: str
    arguments: str
    is_asked: bool = False
    """The client has to approve it first."""
    approval_request_id: str | None = None
    output: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Confirm:
    """The speculation was right: hand over what there is of the reply, and go on with it."""

    response_id: str


@dataclass(frozen=True, slots=True)
class Abandon:
    """Work on this item or response is not wanted any more: its result would be ignored, so stop it."""

    item_id: str | None = None
    response_id: str | None = None


OfHearing = JudgeTurn | Recognize | RecognizeItem
Work = OfHearing | ListTools | Respond | Confirm | Abandon


@dataclass(frozen=True, slots=True)
class PlayoutCut:
    """The speech sent so far shall fall silent now, whatever of it was not played yet.

    It stands among the events in its place and is not one of them: a client that plays by itself learns the same from
    `response.done` and `input_audio_buffer.speech_started`.
    """


@dataclass(frozen=True, slots=True)
class TurnJudged:
    """Probability that the caller has finished, by the turn model."""

    item_id: str
    version: int
    probability: float | None
    """None where it was not asked."""


@dataclass(frozen=True, slots=True)
class Recognized:
    """The words of one reading of an utterance."""

    work: Recognize
    words: str
    """Empty when nothing was understood."""
    confidence: float = 1.0
    language: str = "en"
    """ISO 639-1 code of the language that it was read in; empty where that is not known."""
    is_detected: bool = False
    """The language was heard in the sound."""


@dataclass(frozen=True, slots=True)
class RecognitionFailed:
    work: Recognize
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ItemRecognized:
    """The words of audio that came inside an item; empty when there were none."""

    item_id: str
    words: str


@dataclass(frozen=True, slots=True)
class ItemRecognitionFailed:
    """The words of audio inside an item will not be known; a response that waits for them fails."""

    item_id: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ReplyText:
    """More words of the reply."""

    response_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """A fragment of function call number `index`; the first one names it."""

    response_id: str
    index: int
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ReplyAudio:
    """More speech of the reply, in the output format."""

    response_id: str
    pcm: bytes


class SpokenText(NamedTuple):
    """Times at which a word of the reply is heard; they count from the end of the audio so far."""

    characters: int
    """Characters of the reply up to its end."""
    begin_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True)
class ReplyWords:
    """Words that the audio speaks which comes next."""

    response_id: str
    words: tuple[SpokenText, ...]


@dataclass(frozen=True, slots=True)
class ReplyAside:
    """Speech before the reply that is no part of it, such as "Let me see"; `words` are the same for each piece."""

    response_id: str
    pcm: bytes
    words: str


@dataclass(frozen=True, slots=True)
class ReplySpoken:
    """The audio so far speaks the first `characters` of the reply."""

    response_id: str
    characters: int


@dataclass(frozen=True, slots=True)
class ReplyUsed:
    """Tokens as the chat model counted them."""

    response_id: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ReplyDropped:
    """A reply that was begun early is dropped, or that of a model beside another one; it was sent about so many tokens
    for it."""

    response_id: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ReplyReminders:
    response_id: str
    change: ReminderChange


@dataclass(frozen=True, slots=True)
class Source:
    """A passage of a document."""

    title: str
    text: str
    page: str = ""
    """Page of this product's manual, as its address names it; empty for other documents."""


@dataclass(frozen=True, slots=True)
class ReplySource:
    response_id: str
    source: Source


@dataclass(frozen=True, slots=True)
class ReplyServedBy:
    """The one of several models that writes the reply."""

    response_id: str
    served_by: str


@dataclass(frozen=True, slots=True)
class ReplyAuthor:
    """Says who writes the reply."""

    response_id: str
    author: Author


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    response_id: str
    finish_reason: str


@dataclass(frozen=True, slots=True)
class ReplyFailed:
    """The reply cannot be completed; what was handed over of it is still sent."""

    response_id: str
    code: str
    message: str


OfReply = (
    ReplyText
    | ReplyCall
    | ReplyAudio
    | ReplyAside
    | ReplyWords
    | ReplySpoken
    | ReplyUsed
    | ReplyDropped
    | ReplyReminders
    | ReplySource
    | ReplyServedBy
    | ReplyAuthor
    | ReplyToolCall
    | ReplyEnded
    | ReplyFailed
)
Result = TurnJudged | ToolsListed | Recognized | RecognitionFailed | ItemRecognized | ItemRecognitionFailed | OfReply


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The record of one exchange; said again with the same ordinal when a truncation changes it."""

    ordinal: int
    status: str
    user_text: str
    assistant_text: str
    heard_text: str
    """Part of the reply that was heard before an interruption; all of it otherwise."""
    is_interrupted: bool
    input_audio_ms: int
    output_audio_ms: int
    input_tokens: int
    output_tokens: int
    is_spoken: bool
    """The response followed an utterance. Otherwise the words were typed, the client asked for the response, or the
    caller had been silent for long; then no figure is a voice-to-voice latency."""
    end_of_turn_ms: int | None
    """This and the next three: see `response.Metrics`."""
    recognition_ms: int | None
    first_token_ms: int | None
    first_audio_ms: int | None
    served_by: str = ""
    """The service and model that replied, or `skill` or `document`."""
    lasted_ms: int = 0
    """From the origin of its times to its end."""
    dropped_tokens: int = 0
    """Tokens that were sent for replies to it which were begun and dropped, by their length."""
    is_charged: bool = False
    """Its use is in the ledger already."""
