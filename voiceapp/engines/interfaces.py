"""What each kind of engine promises. A provider implements one of these in one file; the catalogue names it.

Audio inside the engines is mono float32 in [-1, 1] at 16 kHz (`Samples`); speech that an engine makes is mono int16
little-endian PCM. Everything that waits is cancellable: cancelling the awaiting task, or closing the generator, frees
the engine. Streams are async generators, closed with `contextlib.aclosing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from voiceapp.protocol.events import ClientEvent, ServerEvent
from voiceapp.protocol.work import TurnEnded

Samples = NDArray[np.float32]

ENGINE_SAMPLE_RATE_HZ = 16_000
"""Rate of all audio handed to detectors and recognizers."""

VAD_FRAME_SAMPLES = 512
"""One voice-detection frame: 32 ms at 16 kHz."""


class VoiceDetector(Protocol):
    """Speech or not, frame by frame. Stateful, so one per conversation; cheap enough for the event loop."""

    def probability(self, frame: Samples) -> float:
        """Speech probability in [0, 1] of the next 512 samples."""

    def reset(self) -> None:
        """Forget what was heard so far."""


class TurnPredictor(Protocol):
    """Has the speaker finished? Shared by all conversations."""

    async def end_probability(self, audio: Samples) -> float:
        """Probability in [0, 1] that the turn in `audio` (the last 8 s count) is complete.

        Raises EngineUnavailable when its lane is full.
        """


@dataclass(frozen=True, slots=True)
class Recognition:
    text: str
    """What was said; empty when the engine judges that nobody spoke."""
    language: str = "en"
    confidence: float = 1.0
    """Geometric mean of token probabilities, in [0, 1]."""


class Recognizer(Protocol):
    """Speech to text. Shared by all conversations."""

    languages: Sequence[str]
    """ISO 639-1 codes it understands."""

    async def recognize(self, audio: Samples, *, language: str | None = None, urgent: bool = True) -> Recognition:
        """The words of one utterance of any length (it cuts long ones itself).

        `urgent=False` marks a partial result that may be dropped under load. Raises EngineUnavailable when the lane is
        full, EngineRefused for a language it does not know.
        """


def is_one_of(language: str, languages: Sequence[str]) -> bool:
    """Whether a language, as its ISO 639-1 code with or without a region (`en`, `en-GB`), is among a recognizer's."""
    return language.split("-")[0].lower() in languages


@dataclass(frozen=True, slots=True)
class ToolCall:
    call_id: str
    name: str
    arguments: str
    """JSON text as the model wrote it."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """On role `tool`: which call this answers."""
    parts: tuple[dict[str, Any], ...] = ()
    """Texts and images in their order, as OpenAI's interface writes them; `content` then holds the texts alone. Only
    for engines with eyes (`ChatCapabilities.images`)."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    messages: tuple[ChatMessage, ...]
    tools: tuple[dict[str, Any], ...] = ()
    """Function tools in the nested form {"type": "function", "function": {name, description, parameters}}."""
    tool_choice: str | dict[str, Any] | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    """Further sampling parameters, passed on where the engine knows them (top_k, presence_penalty, …)."""
    context: dict[str, Any] = field(default_factory=dict)
    """Facts of the session for engines that answer about it: `model`, `voice`, `started_at` (epoch s), `turns`,
    `time_zone` (IANA name), `spoken` (the answer will be read aloud), `speech_rate`."""


@dataclass(frozen=True, slots=True)
class ChatUsage:
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input: read from a cache."""
    reasoning_tokens: int = 0
    """Of the output: thought before the answer."""


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """One piece of an answer; any of the fields may be set."""

    text: str = ""
    tool_call: ToolCallDelta | None = None
    usage: ChatUsage | None = None
    finish_reason: str | None = None
    """`stop`, `length` or `tool_calls`; on the last delta only."""
    reasoning: str = ""
    """What the model thinks before it answers; not part of the answer."""
    logprobs: tuple[dict[str, Any], ...] = ()
    """Of the tokens of `text`, where asked for: {token, logprob, bytes, top_logprobs}."""
    speech_rate: float | None = None
    """A change of speaking rate that the answer asks for (1.0 is normal), effective from this answer on."""


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ChatCapabilities:
    """What a chat model can be asked for. A model without an attribute `capabilities` has none of these."""

    images: bool = False
    """It has eyes: messages may carry `parts`."""
    tools: bool = False
    """It calls functions."""
    response_format: bool = False
    """It can be told to answer in JSON."""


class ChatModel(Protocol):
    """Messages in, an answer out, piece by piece. What else it can do, an attribute `capabilities` says."""

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Raises EngineUnavailable, EngineTimeout or EngineRefused, before or between deltas."""


@dataclass(frozen=True, slots=True)
class Voice:
    name: str
    title: str
    language: str = "en"


class Synthesizer(Protocol):
    """Text to speech."""

    voices: Sequence[Voice]

    def speak(self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0) -> AsyncGenerator[bytes, None]:
        """Mono int16 PCM of `text` at `sample_rate_hz`, in pieces as they are made.

        An unknown `voice` speaks with the default one. Raises EngineUnavailable.
        """


@dataclass(frozen=True, slots=True)
class Call:
    """What a realtime model must know of the conversation it is opened for."""

    session_id: str
    model: str
    """The model's name as the caller spelled it."""
    time_zone: str = "UTC"
    """IANA name of the zone the caller lives in."""
    input_rate_hz: int = 16_000
    """What `pcm16` input means to this caller; one family of clients says it for 24 kHz."""


class RealtimeStream(Protocol):
    """One open conversation with a realtime model. The doors cannot tell who answers."""

    async def receive(self, event: ClientEvent) -> None:
        """One event from the client. Raises FloodError when the client must be cut off."""

    def events(self) -> AsyncGenerator[ServerEvent | TurnEnded, None]:
        """What to send, on time, and the records of finished exchanges; ends when the session has finished."""

    async def wait_idle(self) -> None:
        """Return when no answer is under way and all events of the last one were taken from `events`."""

    def close(self) -> Sequence[TurnEnded]:
        """Stop all work; returns the records of exchanges that this cut off."""


class RealtimeModel(Protocol):
    """Speech in, speech out."""

    voices: Sequence[Voice]

    def check(self) -> None:
        """Raises EngineUnavailable when no conversation can be opened now, such as for want of weights."""

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> RealtimeStream:
        """Begin a conversation whose work runs in `tasks`; close it when it is over.

        Raises EngineUnavailable when the model cannot serve now.
        """
