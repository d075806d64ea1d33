"""Interfaces of each kind of engine. A provider implements one of these in one file; the catalogue names it.

Audio inside the engines is mono float32 in [-1, 1] at 16 kHz (`Samples`); speech that an engine makes is mono int16
little-endian PCM. Everything that waits is cancellable: cancelling the awaiting task, or closing the generator, frees
the engine. Streams are async generators, closed with `contextlib.aclosing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from voiceapp.catalogue.cards import ModelCard
from voiceapp.errors import EngineError
from voiceapp.protocol.items import Author as Author
from voiceapp.protocol.reminders import Reminder, ReminderChange
from voiceapp.protocol.speaking.stock_replies import StockReply
from voiceapp.protocol.wire.events import ClientEvent, ServerEvent
from voiceapp.protocol.work import PlayoutCut, Source, TurnEnded

Samples = NDArray[np.float32]

ENGINE_SAMPLE_RATE_HZ = 16_000
"""Rate of all audio handed to detectors and recognizers."""

CLAIM_S = 15.0
"""Longest wait of a conversation that was prepared for its session to begin."""

VAD_FRAME_SAMPLES = 512
"""One voice-detection frame: 32 ms at 16 kHz."""


class Provider:
    """Base of every class behind a model card: checked, warmed and closed. Kinds of engine add what they do."""

    @property
    def trouble(self) -> EngineError | None:
        """Error of the server behind this model, for a model that conversations can do without; else None."""
        return None

    def check(self) -> None:
        """Return when the model can serve now; instant.

        Raises:
            EngineUnavailable: if it cannot, such as for want of weights; the message says what to do.
        """

    async def probe(self) -> None:
        """Find out whether another server that the model needs is there, so that `check` knows; 2 s at most."""

    async def prepare(self, call: Call) -> None:
        """Reach what a conversation needs, while its caller can still be refused; it fails with an EngineError."""

    def abandon(self, call: Call) -> None:
        """A conversation that was prepared does not begin."""

    async def warm(self) -> None:
        """Load what the first call would wait for; it fails with an EngineUnavailable."""

    async def close(self) -> None:
        """End child processes and connections."""


class VoiceDetector(Protocol):
    """Speech or not, frame by frame. Stateful, so one per conversation; cheap enough for the event loop."""

    def probability(self, frame: Samples) -> float:
        """Speech probability in [0, 1] of the next 512 samples."""

    async def probability_live(self, frame: Samples) -> float:
        """The same of a frame that was just spoken; where many callers speak, up to 8 ms later."""

    def reset(self) -> None:
        """Forget what was heard so far."""


class VoiceDetection(Protocol):
    def detector(self) -> VoiceDetector:
        """A fresh detector for one conversation.

        Raises:
            EngineUnavailable: if the model is missing.
        """


class TurnPredictor(Protocol):
    """Predicts whether the speaker has finished. Shared by all conversations."""

    async def end_probability(self, audio: Samples) -> float:
        """Probability in [0, 1] that the turn in `audio` (the last 8 s count) is complete.

        Raises:
            EngineUnavailable: if its lane is full.
        """


@dataclass(frozen=True, slots=True)
class Recognition:
    text: str
    language: str = "en"
    confidence: float = 1.0
    """Geometric mean of token probabilities, in [0, 1]."""
    is_detected: bool = False
    """The language was heard in the audio, surely enough to be that of what follows."""
    served_by: str = ""  # see `ChatDelta`


class Recognizer(Protocol):
    """Speech to text. Shared by all conversations."""

    @property
    def languages(self) -> Sequence[str]:
        """ISO 639-1 codes that it knows; empty where it knows any, or that is not known."""

    @property
    def reads_early(self) -> bool:
        """True if an early reading of a turn may stand for the whole turn: the same engine does both."""

    async def recognize(
        self,
        audio: Samples,
        *,
        language: str | None = None,
        among: Sequence[str] | None = None,
        urgent: bool = True,
        terms: Sequence[str] = (),
    ) -> Recognition:
        """The words of one utterance of any length (it cuts long ones itself).

        With `among` the `language` is only expected: it may be another of those, or any if there are none; engines that
        do not detect languages read it as expected. `urgent=False` marks a partial result that may be dropped under
        load. `terms` are names and other words that are likely to be said; what an engine makes of them is its own
        affair.

        Raises:
            EngineUnavailable: if the lane is full.
            EngineRefused: if it does not know the language.
        """


class Translator(Protocol):
    """A `Recognizer` whose card says that it translates."""

    async def translate(self, audio: Samples, *, language: str | None = None) -> Recognition:
        """Translate one utterance into English; its `language` is the one that was spoken, detected if none is given.

        Raises:
            EngineUnavailable: if the lane is full.
        """


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
    """On role `tool`: the call whose output this is."""
    parts: tuple[dict[str, Any], ...] = ()
    """Texts and images in order, as OpenAI writes them, for models that take images; `content` has the texts alone."""


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """Facts about the session that engines may use in a reply."""

    model: str = ""
    voice: str = ""
    time_zone: str = ""
    """IANA name of the zone the caller lives in; empty when it is not known."""
    started_at: float | None = None
    """Epoch seconds; None outside a realtime session."""
    turns: int = 0
    speech_rate: float = 1.0
    """1.0 is normal."""
    is_idle_prompt: bool = False
    """The reply is to a caller who has been silent for long."""
    speaks: bool = False
    """The reply is spoken, so it has to be fit to be listened to."""
    reminders: tuple[Reminder, ...] = ()
    are_tools_ours: bool = False
    """The functions are the operator's, and not a program's: skills come before them."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """Texts that a language model is told around the instructions of a caller."""

    spoken: str = ""
    """First, where the reply is read aloud."""
    instructions: str = ""
    """The operator's."""
    facts: str = ""
    """Last, for it changes from day to day."""


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
    facts: SessionFacts = SessionFacts()
    briefing: Briefing = Briefing()
    """For language models (`messages.briefed`); skills and documents do without."""


@dataclass(frozen=True, slots=True)
class ChatUsage:
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    dropped_messages: int = 0
    """The oldest messages, left out whole because the conversation did not fit into the model's context."""


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """One piece of a reply; any of the fields may be set."""

    text: str = ""
    tool_call: ToolCallDelta | None = None
    usage: ChatUsage | None = None
    finish_reason: str | None = None
    """`stop`, `length`, `tool_calls` or `content_filter`; on the last delta only."""
    reasoning: str = ""
    """Reasoning before the reply; not part of it."""
    is_waiting: bool = False
    """A sign of life: the model may be loaded first, which takes long."""
    logprobs: tuple[dict[str, Any], ...] = ()
    """Log probabilities of the tokens of `text`, where asked for: {token, logprob, bytes, top_logprobs}."""
    served_by: str = ""
    """`ModelCard.origin` of the model that replies, on the first delta only; empty where no model has fallbacks."""
    author: Author | None = None
    """The author of what follows, where that is not the model that was asked."""
    dropped: int = 0
    """Further models that were asked for the same reply, and told to stop; on the first delta only."""

    @property
    def has_words(self) -> bool:
        """It is part of the reply itself."""
        return bool(self.text or self.tool_call)


@dataclass(frozen=True, slots=True)
class AssistantDelta(ChatDelta):
    """A piece of a reply of the built-in assistant, or of a model that reads its documents."""

    speech_rate: float | None = None
    """A change of speaking rate that the reply asks for (1.0 is normal), effective from this reply on."""
    source: Source | None = None
    reminders: ReminderChange | None = None
    """A change of the session's reminders; it has no effect outside a session."""


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class ChatModel(Protocol):
    """Messages in, a reply out, piece by piece. What else it can do stands on its card (`ChatCapabilities`)."""

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """The reply in deltas and function calls; it can fail before the first and between two of them.

        Raises:
            EngineUnavailable: if the engine cannot serve now.
            EngineTimeout: if the engine takes too long.
            EngineRefused: if the engine does not accept the request.
        """


class ChatProvider(ChatModel, Protocol):
    """A chat model that is checked, probed and warmed as every `Provider` is."""

    def check(self) -> None: ...
    async def probe(self) -> None: ...
    async def prepare(self, call: Call) -> None: ...
    async def warm(self) -> None: ...


class WrappedChat(Provider):
    """A provider before another chat model, which is closed as a model of its own."""

    def __init__(self, chat: ChatProvider) -> None:
        self._chat = chat

    def check(self) -> None:
        self._chat.check()

    async def probe(self) -> None:
        await self._chat.probe()

    async def prepare(self, call: Call) -> None:
        await self._chat.prepare(call)

    async def warm(self) -> None:
        await self._chat.warm()


@dataclass(frozen=True, slots=True)
class Voice:
    name: str
    title: str
    language: str = "en"


class Synthesizer(Protocol):
    """Text to speech."""

    @property
    def voices(self) -> Sequence[Voice]:
        """Voices that a caller may choose from."""

    @property
    def default_voice(self) -> str:
        """The name of the voice of those who choose none."""

    def speak(self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0) -> AsyncGenerator[bytes, None]:
        """Mono int16 PCM of `text` at `sample_rate_hz`, in pieces as they are made; an unknown `voice` is the default.

        Raises:
            EngineUnavailable: if it cannot serve now.
        """


@dataclass(frozen=True, slots=True)
class NextResponse:
    """A response that is about to begin: what is known of its size."""

    ordinal: int
    """Ordinal of the `TurnEnded` that it will come to."""
    input_audio_ms: int
    """Length of the user's speech before it."""
    input_bytes: int
    """Length of the text that the chat model reads."""
    max_tokens: int | None
    """The most that the chat model may write; None leaves it to the model."""
    speaks: bool
    """It is read aloud."""


class SpeechMeter(Protocol):
    async def reserve(self, *, characters: int) -> None:
        """Set aside what the response uses at most, in all.

        Raises:
            AccessDenied: if the key's budget does not allow it.
            Throttled: if a quota is used up.
        """

    def used(self, *, characters: int) -> None:
        """Say what it has used so far, in all.

        Raises:
            AccessDenied: if that is more than the key's budget had left.
        """


@dataclass(frozen=True, slots=True)
class Call:
    """Facts about the conversation that a realtime model is opened for."""

    session_id: str
    model: str
    is_guest: bool = False
    guest_lasts_s: float | None = None
    """Longest duration of a guest's session; None for others, who are not told before its end."""
    time_zone: str = "UTC"
    """IANA name of the zone the caller lives in."""
    languages: tuple[str, ...] = ()
    """ISO 639-1 codes of the languages that the caller may speak, likeliest first; empty: any."""
    input_rate_hz: int = 16_000
    """Sample rate of this caller's `pcm16` input; one family of clients means 24 kHz by it."""
    chat: ModelCard | None = None
    """Model that writes the replies; None is the one of this server."""
    briefing: Briefing = Briefing()
    first_words: str = ""
    pace: float = 1.0
    """Rate of speech; 1.0 is normal."""
    tools: tuple[str, ...] | None = None
    """Servers of tools, and single tools as `server/tool`, that the model may call; None: those of every
    conversation."""
    usual: dict[str, Any] = field(default_factory=dict)
    """Settings in the place of this server's defaults, in the words of `session.update`."""
    fixed: frozenset[str] = frozenset()
    """Fields of `SessionConfig` that the caller does not change."""
    opening: dict[str, Any] = field(default_factory=dict)
    """Settings that came with the handshake, as those of a `session.update` that was accepted."""
    listens_only: bool = False
    """The session transcribes what is said, and gives no responses."""
    has_track: bool = False
    """Audio has a media track that ends here: PCM at 16 kHz comes from it, at 24 kHz goes to it."""
    is_forwarded: bool = False
    """Messages come and go as they are (`protocol.forwarding`)."""
    before_response: Callable[[NextResponse], Awaitable[str]] | None = None
    """Asked before each response: what is said in place of a reply, such as why the conversation ends now; empty lets
    the model reply. None lets it always."""
    charge: Callable[[str], AbstractAsyncContextManager[SpeechMeter]] | None = None
    """Stands around each response that reads text aloud, with its id."""
    prompted: Callable[[object], Awaitable[AgentTerms]] | None = None
    """Returns the terms of the agent that a `prompt` names, which answers from then on. It fails with a
    RequestRefused."""


class AgentTerms(NamedTuple):
    """Terms that an agent adds to a `Call`."""

    fields: dict[str, Any]
    lasts_s: float
    """Longest duration of its conversations."""


class RealtimeStream(Protocol):
    """One open conversation with a realtime model. The doors cannot tell what serves it."""

    async def receive(self, event: ClientEvent) -> None:
        """One event from the client.

        Raises:
            FloodError: if the client must be cut off.
        """

    def events(self) -> AsyncGenerator[ServerEvent | PlayoutCut | TurnEnded, None]:
        """Yield events to send, on time, the cuts of playout, and the records of finished exchanges.

        It ends when the session has finished.
        """

    def notify(self, words: str | StockReply) -> bool:
        """Say an operator's sentence once both sides are silent; False where nothing here can speak."""

    async def wait_idle(self) -> None:
        """Return when no response is under way and all events of the last one were taken from `events`."""

    def close(self) -> Sequence[TurnEnded]:
        """Stop all work; returns the records of exchanges that this cut off."""


class RealtimeModel(Protocol):
    """Speech in, speech out."""

    @property
    def voices(self) -> Sequence[Voice]:
        """Voices that a caller may choose from; empty where they are not known here."""

    @property
    def default_voice(self) -> str:
        """The name of the voice of those who choose none; empty where that is not known here."""

    def open(self, call: Call, tasks: asyncio.TaskGroup) -> RealtimeStream:
        """Begin a conversation whose work runs in `tasks`; close it when it is over.

        Raises:
            EngineUnavailable: if the model cannot serve now.
        """
